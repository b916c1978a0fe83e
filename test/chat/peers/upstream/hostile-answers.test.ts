import { expect, test } from 'vitest';
import { longestPieceMs, maxPieceMs } from '../../../support/main-thread.ts';
import { ask, askStream, serve, streaming } from './support.ts';

const limits = { maxAnswerBytes: 32 * 1024 * 1024 };
const answer = (content: string): string =>
  `{"choices":[{"message":{"content":${content}},"finish_reason":"stop"}]}`;
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const events = (event: string, chars: number): string => event.repeat(Math.floor(chars / event.length));

test.each([
  ['six megabytes of levels', answer(nested(3_000_000)), { kind: 'failed', cause: 'malformed' }],
  [
    'nine megabytes of empty lists',
    answer(`[${'[],'.repeat(3_000_000)}0]`),
    { kind: 'failed', cause: 'malformed' },
  ],
  [
    'eight megabytes of text without a usage',
    answer(JSON.stringify('word '.repeat(1_600_000))),
    { kind: 'completed', isFinished: true },
  ],
  [
    'likeliest tokens beside each token',
    answer('"x"').replace('"finish', `"logprobs":[${'{"top":[[1,2],[3,4]]},'.repeat(40_000)}0],"finish`),
    { kind: 'completed', written: 'x' },
  ],
])('a whole answer of %s delays no other request', async (_, body, expected) => {
  const bytes = Buffer.from(body);
  const upstream = await serve((__, response) => response.end(bytes), limits);
  const longest = await longestPieceMs(async () => expect(await ask(upstream, 'x')).toMatchObject(expected));
  expect(longest).toBeLessThan(maxPieceMs);
});

test.each([
  [
    'choices without end',
    Array.from({ length: 100_000 }, (_, index) => `data: {"choices":[{"index":${index}}]}\n\n`).join(''),
  ],
  ['blank lines', events('\n', 1_000_000)],
  ['comments', events(':\n\n', 1_000_000)],
  ['small events', events('data: {"choices":[]}\n\n', 4_000_000)],
  ['lines within one event', `${events('data: 1\n', 2_000_000)}\n`],
  ['levels within one event', `data: ${nested(400_000)}\n\n`],
])('a stream of %s delays no other request', async (_, body) => {
  const bytes = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n${body}`);
  const upstream = await serve((__, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.end(bytes);
  }, limits);
  const longest = await longestPieceMs(async () => {
    const { chunks } = streaming(await askStream(upstream, 'x'));
    for await (const together of chunks) expect(together).not.toHaveLength(0);
  });
  expect(longest).toBeLessThan(maxPieceMs);
});
