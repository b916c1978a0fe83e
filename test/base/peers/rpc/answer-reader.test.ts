import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../../../src/base/peers/rpc/answer-reader.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const maxBytes = 1_000_000;

/** Reads a text in pieces of these lengths, the last one repeated. */
function read(text: string, lengths: readonly number[] = [text.length || 1]) {
  const reader = new AnswerReader<unknown>({ maxBytes, keep: (element) => element });
  const bytes = Buffer.from(text);
  for (let at = 0, piece = 0; at < bytes.length; piece++) {
    const end = at + (lengths[Math.min(piece, lengths.length - 1)] ?? 1);
    reader.write(bytes.subarray(at, end));
    at = end;
  }
  return { outline: reader.end(), kept: reader.kept, problem: reader.problem };
}

/** The value as an outline has it: without the elements of arrays. */
function outlineOf(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, outlineOf(field)]));
}

describe('an answer that is read in pieces', () => {
  const elements = fc.array(fc.oneof(fc.object(), fc.array(fc.jsonValue())), { maxLength: 5 });
  const lengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 20 });

  test('gives the elements of its result and an outline of the rest, wherever it is cut', () => {
    const answer = fc.record({
      before: fc.object(),
      result: fc.oneof(elements, fc.object()),
      after: fc.jsonValue(),
    });
    fc.assert(
      fc.property(answer, lengths, fc.constantFrom(undefined, 2), (value, cuts, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const same = JSON.parse(text) as typeof value;
        const { outline, kept, problem } = read(text, cuts);
        expect(problem).toBeUndefined();
        expect(outline).toEqual(outlineOf(same));
        expect(kept).toEqual(Array.isArray(same.result) ? same.result : []);
      }),
      propertyRuns(200),
    );
  });

  test('gives nothing if it is cut off, and never throws, whatever the bytes are', () => {
    const whole = JSON.stringify({ jsonrpc: '2.0', id: 1, result: [{ a: ['"', '\\'] }, {}] });
    for (let length = 0; length < whole.length; length++)
      expect(read(whole.slice(0, length)).outline).toBeUndefined();
    fc.assert(
      fc.property(fc.stringMatching(/^[{}[\]":,\\1 a]{0,60}$/), lengths, (text, cuts) => {
        read(text, cuts);
        read(`{"result":[${text}`, cuts);
      }),
      propertyRuns(300),
    );
  });

  test.each([
    ['a text', '["log"]'],
    ['a number', '[1]'],
    ['null', '[null]'],
    ['closed as an object', '[{}}'],
    ['with an element that is not a JSON', '[{"a":}]'],
  ])('is malformed where its result is an array %s', (_, result) => {
    const reader = new AnswerReader<object>({
      maxBytes,
      keep(element) {
        if (typeof element !== 'object' || element === null) throw new TypeError('no object');
        return element;
      },
    });
    reader.write(Buffer.from(`{"result":${result}}`));
    expect(reader.problem).toBe('malformed');
    expect(reader.end()).toBeUndefined();
  });

  test('keeps no element that is too long, no long text and no array of its outline', () => {
    const long = 'x'.repeat(100_000);
    const value = { note: `\\"${long}`, list: [long], result: [{ long }, { short: 1 }] };
    const { outline, kept } = read(JSON.stringify(value), [1_000]);
    expect(outline).toEqual({ note: '', list: [], result: [] });
    expect(kept).toEqual([{ short: 1 }]);
  });

  test('is not read on where its outline is too long', () => {
    const fields = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f${at}`, at]));
    expect(read(JSON.stringify({ ...fields, result: [] })).problem).toBe('too_large');
  });

  test('holds of many elements only what is kept of them', () => {
    const reader = new AnswerReader<number>({
      maxBytes,
      keep: (element) => (element as { n: number }).n || undefined,
    });
    reader.write(Buffer.from('{"result":[{"n":1}'));
    for (let n = 0; n < 1_000; n++) reader.write(Buffer.from(',{"n":0}'.repeat(100)));
    reader.write(Buffer.from(',{"n":2}],"jsonrpc":"2.0"}'));
    expect(reader.end()).toEqual({ result: [], jsonrpc: '2.0' });
    expect(reader.kept).toEqual([1, 2]);
  });
});
