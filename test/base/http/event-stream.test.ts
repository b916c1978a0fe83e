import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { eventStream } from '../../../src/base/http/event-stream.ts';
import { eventually } from '../../support/wait.ts';

const steady = { keepAliveMs: 60_000, isCutShort: () => false };

/** Events that are produced on demand, and how many were; they end on request. */
function source(count: number) {
  const seen = { made: 0, isEnded: false };
  async function* events(): AsyncGenerator<Buffer, void> {
    try {
      while (seen.made < count) {
        seen.made++;
        yield Buffer.from(`data: ${seen.made}\n\n`);
      }
    } finally {
      seen.isEnded = true;
    }
  }
  return { seen, events: events() };
}

test('all events arrive in order, followed by the end', async () => {
  const { events, seen } = source(3);
  const text = (await (await eventStream(events, steady)).toArray()).join('');
  expect(text).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
  expect(seen.isEnded).toBe(true);
});

test('at most one event is produced ahead of the reader', async () => {
  const { events, seen } = source(100);
  const stream = await eventStream(events, steady);
  const iterator = stream[Symbol.asyncIterator]();
  for (let read = 0; read < 5; read++) await iterator.next();
  expect(seen.made).toBeLessThanOrEqual(7);
  await iterator.return?.();
});

test('events are ended when their reader leaves, even before it has read anything', async () => {
  for (const reads of [0, 2]) {
    const { events, seen } = source(100);
    const stream = await eventStream(events, steady);
    const iterator = stream[Symbol.asyncIterator]();
    for (let read = 0; read < reads; read++) await iterator.next();
    stream.destroy();
    await eventually(() => expect(seen.isEnded).toBe(true));
  }
});

test('comments are sent while no event arrives', async () => {
  const silence = Promise.withResolvers<void>();
  async function* events(): AsyncGenerator<Buffer, void> {
    yield Buffer.from('data: 1\n\n');
    await silence.promise;
    yield Buffer.from('data: 2\n\n');
  }
  const stream = await eventStream(events(), { ...steady, keepAliveMs: 5 });
  let text = '';
  stream.on('data', (bytes: Buffer) => {
    text += bytes.toString();
    if (text.split('\n\n').length >= 5) silence.resolve();
  });
  await finished(stream);
  expect(text).toMatch(/^data: 1\n\n(?:: keep-alive\n\n){3,}data: 2\n\n$/);
});

test('a stream that was cut short does not end like a complete one', async () => {
  const { events } = source(1);
  const stream = await eventStream(events, { ...steady, isCutShort: () => true });
  await expect(stream.toArray()).rejects.toThrow('the gateway is shutting down');
});
