import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSseSplitter, type SseEvent } from '../../../src/chat/rules/sse.ts';

const anyEnd = fc.constantFrom('\n', '\r', '\r\n');
const anyText = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll(/[\r\n]/g, ''));
const anyLine = fc.oneof(
  fc
    .tuple(fc.constantFrom('data: ', 'data:', ': ', 'event: ', 'id: ', 'x'), anyText)
    .map((parts) => parts.join('')),
  fc.constant('data'),
);
/** A stream of events, each with line ends of its own, and what was begun behind the last. */
const anyStream = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(fc.array(anyLine, { minLength: 1, maxLength: 4 }), anyEnd), { maxLength: 6 }),
    anyText,
  )
  .map(([hasMark, events, rest]) => {
    const texts = events.map(([lines, end]) => lines.map((line) => line + end).join('') + end);
    return Buffer.from((hasMark ? '\uFEFF' : '') + texts.join('') + rest.trim());
  });
/** Any bytes at all, line ends among them more often than by chance. */
const anyBytes = fc
  .array(fc.oneof(fc.constantFrom(10, 13, 58), fc.nat(255)), { maxLength: 200 })
  .map((bytes) => Buffer.from(bytes));
const anyInput = fc.oneof(anyStream, anyBytes);
const anyCuts = fc.array(fc.nat(300), { maxLength: 20 });

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((at) => Math.min(at, bytes.length)), bytes.length].toSorted((a, b) => a - b);
  return places.slice(1).map((end, at) => bytes.subarray(places[at], end));
}

function split(
  pieces: readonly Buffer[],
  maxEventBytes = 10_000,
): { events: SseEvent[]; rest: SseEvent | undefined } {
  const splitter = createSseSplitter(maxEventBytes);
  const events = pieces.flatMap((piece) => [...splitter.push(piece)]);
  return { events, rest: splitter.end() };
}

/** The standard's own reading of a whole text, for comparison: no bytes kept, nothing incremental. */
function dataOf(bytes: Buffer): (string | undefined)[] {
  const lines = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\r|\n/);
  const found: (string | undefined)[] = [];
  let data: string | undefined;
  // The text after the last line end is not a complete line yet.
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      found.push(data);
      data = undefined;
    } else if (line === 'data' || line.startsWith('data:')) {
      const value = line.slice(5).replace(/^ /, '');
      data = data === undefined ? value : `${data}\n${value}`;
    }
  }
  return found;
}

describe('an event stream cut anywhere', () => {
  test('gives back all its bytes, in order', () => {
    fc.assert(
      fc.property(anyInput, anyCuts, (bytes, cuts) => {
        const { events, rest } = split(cut(bytes, cuts));
        const given = Buffer.concat([...events, ...(rest ? [rest] : [])].map(({ raw }) => raw));
        expect(given.subarray(0, bytes.length)).toEqual(bytes);
        expect(given.subarray(bytes.length).toString()).toMatch(/^(\n\n)?$/);
      }),
    );
  });

  test('has the data that the whole text has', () => {
    fc.assert(
      fc.property(anyInput, anyCuts, (bytes, cuts) => {
        expect(split(cut(bytes, cuts)).events.map(({ data }) => data)).toEqual(dataOf(bytes));
      }),
    );
  });

  test('gives an event with the first byte that ends it', () => {
    fc.assert(
      fc.property(anyInput, (bytes) => {
        const splitter = createSseSplitter(10_000);
        const counts = Array.from(bytes, (_, at) => [...splitter.push(bytes.subarray(at, at + 1))].length);
        for (const [at, count] of counts.entries()) {
          const before = dataOf(bytes.subarray(0, at)).length;
          // A CR ends a line before it is known whether an LF follows.
          expect(count).toBe(dataOf(bytes.subarray(0, at + 1)).length - before);
        }
      }),
    );
  });

  test('never holds more than the limit', () => {
    fc.assert(
      fc.property(anyInput, anyCuts, fc.integer({ min: 1, max: 60 }), (bytes, cuts, limit) => {
        const splitter = createSseSplitter(limit);
        for (const piece of cut(bytes, cuts))
          for (const { raw } of splitter.push(piece)) expect(raw.length).toBeLessThanOrEqual(limit);
        const longest = Math.max(0, ...split([bytes]).events.map(({ raw }) => raw.length));
        // An event may have one byte more or less: the LF after a CR belongs to the piece that the cut puts it in.
        expect(splitter.isTooLarge || longest <= limit + 1).toBe(true);
        expect(splitter.isTooLarge ? [...splitter.push(Buffer.from('data\n\n'))] : []).toEqual([]);
      }),
    );
  });
});

describe('a server-sent event', () => {
  test.each([
    ['data: a\n\n', { data: 'a' }],
    ['data:a\n\n', { data: 'a' }],
    ['data:  a \n\n', { data: ' a ' }],
    ['data: a\ndata: b\r\n\r\n', { data: 'a\nb' }],
    ['data\n\n', { data: '' }],
    ['\uFEFFdata: a\n\n', { data: 'a' }],
    [': comment\n\n', {}],
    ['datas: a\n\n', {}],
    ['event: error\ndata: a\n\n', { name: 'error', data: 'a' }],
    ['data: \u{1F600}\n\n', { data: '\u{1F600}' }],
  ])('is parsed from %j', (text, expected) => {
    const { events } = split([Buffer.from(text)]);
    expect(events).toEqual([{ raw: Buffer.from(text), ...expected }]);
  });

  test('is not lost when the stream ends without its blank line', () => {
    for (const text of ['data: [DONE]', 'data: [DONE]\n', 'data: [DONE]\r']) {
      const { rest } = split([Buffer.from(text)]);
      expect(rest?.data).toBe('[DONE]');
      expect(split([rest?.raw ?? Buffer.alloc(0)]).events[0]?.data).toBe('[DONE]');
    }
    expect(split([Buffer.from('data: a\n\n')]).rest).toBeUndefined();
  });
});
