import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { eventually } from '../../../support/wait.ts';
import {
  ask,
  askStream,
  type Listener,
  readAll,
  serve,
  startModel,
  streamBodyOf,
  streaming,
} from './support.ts';

/** Writes events without end. */
const endless: Listener = (_, response) => {
  const events = 'data: {"choices":[{}]}\n\n'.repeat(1000);
  response.on('drain', () => response.write(events));
  response.write(events.repeat(10));
};

/** The number once it has not changed for a while. */
async function standsStill(read: () => number): Promise<number> {
  let before = Number.NaN;
  let stillFor = 0;
  await eventually(() => {
    const now = read();
    stillFor = now === before ? stillFor + 1 : 0;
    before = now;
    expect(stillFor).toBeGreaterThan(30);
  });
  return before;
}

describe('a stream', () => {
  test('comes byte for byte up to its end, each event with its role', async () => {
    const { model, upstream } = await startModel();
    const direct = await fetch(`${model.url}/chat/completions`, {
      method: 'POST',
      body: streamBodyOf('one \u{1F600}'),
    });
    const { bytes, roles, ending } = await readAll(await askStream(upstream, 'one \u{1F600}'));
    expect(bytes).toEqual(Buffer.from(await direct.arrayBuffer()));
    expect(roles).toEqual(['part', 'part', 'part', 'part', 'usage', 'done']);
    expect(ending).toMatchObject({ kind: 'completed', isTerminated: true, usage: { completionTokens: 2 } });
  });

  test('keeps comments, odd line ends and pieces cut anywhere', async () => {
    const part = JSON.stringify({
      choices: [{ index: 0, delta: { content: '\u{1F600}é' }, finish_reason: 'stop' }],
    });
    const text = `: waiting\r\n\r\n\uFEFF\n: hm\n\nid: 1\r\ndata: ${part}\r\n\r\ndata:${part}\r\rdata: [DONE]\n\n`;
    const upstream = await serve(async (_, response) => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 3) {
        await new Promise((resolve) => response.write(bytes.subarray(at, at + 3), resolve));
      }
      response.end();
    });
    const { bytes, roles, ending } = await readAll(await askStream(upstream, 'hello'));
    expect(bytes.toString()).toBe(text);
    expect(roles.filter((role) => role !== 'other')).toEqual(['part', 'part', 'done']);
    expect(ending).toMatchObject({ kind: 'completed', written: '\u{1F600}é\u{1F600}é' });
  });

  test('gives the events together that came together', async () => {
    const events = ['data: {"choices":[{}]}\n\n', 'data: {"choices":[{"delta":{}}]}\n\n', 'data: [DONE]\n\n'];
    const upstream = await serve((_, response) => {
      for (const event of events) response.write(event);
      response.end();
    });
    const items = await Array.fromAsync(streaming(await askStream(upstream, 'hello')).chunks);
    expect(items.map((together) => together.map(({ raw }) => raw.toString()))).toEqual([events]);
  });

  test('is complete with [DONE], whatever the connection does then', async () => {
    const upstream = await serve((_, response) => {
      response.write(`data: {"choices":[{"delta":{}}]}\n\ndata: [DONE]\n\n`);
    });
    const { ending } = await readAll(await askStream(upstream, 'hello'));
    expect(ending).toMatchObject({ kind: 'completed', isTerminated: true });
    expect(upstream.running).toBe(0);
  });

  test('ends with a [DONE] that lacks its blank line, and gets it', async () => {
    const upstream = await serve((_, response) => response.end('data: {"choices":[{}]}\n\ndata: [DONE]'));
    const { bytes, ending } = await readAll(await askStream(upstream, 'hello'));
    expect(bytes.toString()).toBe('data: {"choices":[{}]}\n\ndata: [DONE]\n\n');
    expect(ending).toMatchObject({ kind: 'completed', isTerminated: true });
  });

  test.each([
    ['an event without an end', 'too_large', `data: ${'a'.repeat(5000)}`],
    ['an error event', 'error_object', 'event: error\ndata: {"message":"no"}\n\n'],
    ['nothing but [DONE]', 'empty', 'data: [DONE]\n\n'],
    ['nothing but comments', 'malformed', ': a\n\n: b\n\n'],
    ['JSON under no label', 'malformed', '{"choices":[{"message":{"content":"a"}}]}'],
  ])('with %s never begins', async (_, cause, text) => {
    const upstream = await serve((_request, response) => response.end(text), { maxAnswerBytes: 4000 });
    expect(await askStream(upstream, 'hello')).toMatchObject({
      kind: 'failed',
      cause,
      beforeFirstByte: true,
    });
  });

  test.each([
    ['too long an event', 'too_large', `data: ${'a'.repeat(5000)}\n\n`],
    ['an error event', 'error_object', 'event: error\ndata: {"message":"no"}\n\n'],
    ['an end within an event', 'cut', 'data: {"choices":[{"del'],
  ])('that continues with %s fails', async (_, cause, text) => {
    const first = 'data: {"choices":[{}]}\n\n';
    const upstream = await serve((_request, response) => response.end(first + text), {
      maxAnswerBytes: 4000,
    });
    const { bytes, ending } = await readAll(await askStream(upstream, 'hello'));
    expect(bytes.toString()).toBe(first);
    expect(ending).toMatchObject({ kind: 'failed', cause, beforeFirstByte: false });
  });

  test('does not begin with comments, however many', async () => {
    const upstream = await serve(
      (_, response) => {
        const drip = setInterval(() => response.write(': processing\n\n'), 5);
        response.on('close', () => clearInterval(drip));
      },
      { firstByteTimeoutMs: 100 },
    );
    expect(await askStream(upstream, 'hello')).toMatchObject({ kind: 'failed', cause: 'first_byte_timeout' });
  });

  test('has an end in time even if it never falls silent', async () => {
    const upstream = await serve(
      (_, response) => {
        const drip = setInterval(() => response.write('data: {"choices":[{}]}\n\n'), 5);
        response.on('close', () => clearInterval(drip));
      },
      { totalTimeoutMs: 60_000 },
    );
    const deadlines = holdDeadlines();
    const reading = readAll(await askStream(upstream, 'hello'));
    expect(await deadlines.end(60_000)).toEqual([60_000]);
    const { ending } = await reading;
    expect(ending).toMatchObject({ kind: 'failed', cause: 'total_timeout' });
  });

  test('whose reader takes too long is ended for that', async () => {
    let isClosed = false;
    let writes = 0;
    const upstream = await serve(
      (_, response) => {
        const events = 'data: {"choices":[{}]}\n\n'.repeat(1000);
        response.on('drain', () => {
          writes += 1;
          response.write(events);
        });
        response.on('close', () => (isClosed = true));
        response.write(events.repeat(10));
      },
      { totalTimeoutMs: 60_000 },
    );
    const deadlines = holdDeadlines();
    const answer = await askStream(upstream, 'hello');
    await standsStill(() => writes);
    expect(await deadlines.end(60_000)).toEqual([60_000]);
    await eventually(() => expect(isClosed).toBe(true));
    expect((await readAll(answer)).ending).toMatchObject({ kind: 'failed', cause: 'slow_reader' });
  });

  test('whose reader is stalled loses its slot to a request that finds none, and not before its time', async () => {
    const patient = await serve(endless, { maxConcurrent: 1 });
    const kept = streaming(await askStream(patient, 'hello'));
    expect(await askStream(patient, 'too early')).toEqual({ kind: 'busy' });
    kept.abort();
    const upstream = await serve(endless, { maxConcurrent: 1, stalledReaderTimeoutMs: 50 });
    const stalled = await askStream(upstream, 'hello');
    await eventually(async () => {
      const answer = await askStream(upstream, 'hello');
      expect(answer.kind).toBe('streaming');
      streaming(answer).abort();
    });
    expect((await readAll(stalled)).ending).toMatchObject({ kind: 'failed', cause: 'slow_reader' });
  });

  test('makes its upstream wait for a slow reader, and loses nothing by it', async () => {
    const { model, upstream } = await startModel({ idleTimeoutMs: 60_000 });
    const deadlines = holdDeadlines();
    const answer = streaming(await askStream(upstream, 'words:60000'));
    const call = model.calls[0];
    // The connection's own buffers fill up, and then the upstream stands still, for longer than it may be idle.
    const before = await standsStill(() => call?.sentBytes ?? -1);
    expect(await deadlines.end(60_000)).toEqual([]);
    expect(call?.state).toBe('answering');
    const { bytes, ending } = await readAll(answer);
    expect(ending).toMatchObject({ kind: 'completed', usage: { completionTokens: 60_000 } });
    expect(bytes.length).toBe(call?.sentBytes);
    expect(before).toBeLessThan(bytes.length / 2);
  });
});

describe('an abort', () => {
  test('by the signal ends a request that waits, and closes its connection', async () => {
    const { model, upstream } = await startModel();
    const caller = new AbortController();
    const answers = [
      ask(upstream, 'fault:hang', caller.signal),
      askStream(upstream, 'fault:hang', caller.signal),
    ];
    await eventually(() => expect(model.calls).toHaveLength(2));
    caller.abort();
    for (const answer of answers) expect(await answer).toMatchObject({ kind: 'failed', cause: 'aborted' });
    expect(upstream.running).toBe(0);
    await eventually(() => expect(model.calls.map(({ state }) => state)).toEqual(['dropped', 'dropped']));
  });

  test('by the signal ends an unread stream, and closes its connection', async () => {
    const { model, upstream } = await startModel();
    const caller = new AbortController();
    const answer = streaming(await askStream(upstream, 'words:100000', caller.signal));
    caller.abort();
    expect(await answer.ending).toMatchObject({ kind: 'failed', cause: 'aborted', beforeFirstByte: false });
    expect(await Array.fromAsync(answer.chunks)).toEqual([]);
    await eventually(() => expect(model.calls[0]?.state).toBe('dropped'));
  });

  test('ends a stream whose reader waits', async () => {
    const { model, upstream } = await startModel();
    const answer = streaming(await askStream(upstream, 'fault:stall_mid_stream'));
    const reading = readAll(answer);
    await eventually(() => expect(model.calls[0]?.sentBytes).toBeGreaterThan(0));
    answer.abort();
    expect((await reading).ending).toMatchObject({ kind: 'failed', cause: 'aborted' });
    await eventually(() => expect(model.calls[0]?.state).toBe('dropped'));
  });

  test('is what leaving the loop means', async () => {
    const { model, upstream } = await startModel();
    const answer = streaming(await askStream(upstream, 'fault:stall_mid_stream'));
    for await (const together of answer.chunks) if (together.some(({ role }) => role === 'part')) break;
    expect(await answer.ending).toMatchObject({ kind: 'failed', cause: 'aborted' });
    await eventually(() => expect(model.calls[0]?.state).toBe('dropped'));
  });

  test('before the request sends nothing', async () => {
    const { model, upstream } = await startModel();
    expect(await ask(upstream, 'hello', AbortSignal.abort())).toMatchObject({
      kind: 'failed',
      cause: 'not_sent',
    });
    expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'completed' });
    expect(model.calls).toHaveLength(1);
  });

  test('after the end changes nothing', async () => {
    const { upstream } = await startModel();
    const caller = new AbortController();
    const answer = await askStream(upstream, 'hello', caller.signal);
    const { ending } = await readAll(answer);
    caller.abort();
    streaming(answer).abort();
    expect(ending).toEqual(await streaming(answer).ending);
    expect(ending.kind).toBe('completed');
  });
});

test('many simultaneous streams each get their own bytes', async () => {
  const { upstream } = await startModel();
  const prompts = Array.from({ length: 60 }, (_, at) => `words:${50 + at}`);
  const answers = await Promise.all(
    prompts.map(async (prompt) => readAll(await askStream(upstream, prompt))),
  );
  expect(answers.map(({ ending }) => ending.usage?.completionTokens)).toEqual(
    prompts.map((_, at) => 50 + at),
  );
  expect(new Set(answers.map(({ bytes }) => createHash('sha256').update(bytes).digest('hex'))).size).toBe(60);
});
