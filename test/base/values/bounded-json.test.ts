import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonBounds, jsonValue, readJson } from '../../../src/base/values/bounded-json.ts';
import { indentedJson } from '../../../src/base/values/indented-json.ts';
import { cpuMs, maxPieceMs } from '../../support/main-thread.ts';

const refused = (problem: string): object => ({ kind: 'refused', problem });

test('JSON within the bounds is read as the language reads it, also if it is not one', () => {
  const anyText = fc.oneof(fc.json(), fc.string(), fc.stringMatching(/^[[\]{}":,0-9\\ ]{0,30}$/));
  fc.assert(
    fc.property(anyText, (text) => {
      let expected: unknown;
      try {
        expected = JSON.parse(text);
      } catch {
        expected = undefined;
      }
      expect(jsonValue(text)).toEqual(expected);
      expect(jsonValue(Buffer.from(text.toWellFormed()))).toEqual(
        text.isWellFormed() ? expected : jsonValue(text.toWellFormed()),
      );
    }),
  );
});

test('JSON of more levels or values than the bounds is refused, whatever follows them', () => {
  const { maxDepth, maxMarks } = jsonBounds;
  expect(readJson('['.repeat(maxDepth) + ']'.repeat(maxDepth)).kind).toBe('json');
  expect(readJson('['.repeat(maxDepth + 1))).toEqual(refused('too_deep'));
  expect(readJson(`[${'0,'.repeat(maxMarks - 1)}0]`).kind).toBe('json');
  expect(readJson(`[${'0,'.repeat(maxMarks)}0]`)).toEqual(refused('too_many_values'));
  expect(readJson(JSON.stringify('[,'.repeat(maxMarks))).kind).toBe('json');
  expect(readJson('{"a":')).toEqual(refused('malformed'));
});

test.each([
  ['brackets', '['.repeat(1_000_000)],
  ['empty lists', `[${'[],'.repeat(330_000)}0]`],
  ['one text', JSON.stringify('x'.repeat(1_000_000))],
  ['escaped quotation marks', `"${String.raw`\"`.repeat(500_000)}"`],
  ['a text that does not end', '"\\'.repeat(500_000)],
  ['as many values as may be', `[${'{"a":1},'.repeat(19_000)}0]`.padEnd(1_000_000)],
])('a megabyte of %s is read or refused without delay', (_, text) => {
  const bytes = Buffer.from(text);
  expect(cpuMs(() => readJson(bytes))).toBeLessThan(maxPieceMs);
});

test.each([
  ['quotation marks and backslashes', '"\\'.repeat(65_000)],
  ['quotation marks and line breaks behind backslashes', '"\\"\\\n'.repeat(26_000)],
  ['brackets and blanks', '[ '.repeat(65_000)],
  ['open texts', '"a'.repeat(65_000)],
])('a text that is not JSON, of %s, is indented without delay', (_, text) => {
  expect(cpuMs(() => indentedJson(text, 20_000))).toBeLessThan(maxPieceMs);
});
