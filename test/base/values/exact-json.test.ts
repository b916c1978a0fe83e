import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonBounds } from '../../../src/base/values/bounded-json.ts';
import { parseJsonObject } from '../../../src/base/values/exact-json.ts';

const written = (text: string): string => JSON.stringify(parseJsonObject(Buffer.from(text)));
const parsed = (text: string) => parseJsonObject(Buffer.from(text));
const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
/** JSON with `marks` commas, colons and opening brackets. */
const withMarks = (marks: number, item = '0'): string => `{"a":[${`${item},`.repeat(marks - 3)}${item}]}`;

const { maxMarks: maxJsonMarks } = jsonBounds;

describe('a JSON object', () => {
  test.each([
    '{"seed":9223372036854775807}',
    '{"seed":-9223372036854775808,"n":1}',
    '{"a":[{"maximum":18446744073709551615}]}',
    '{"x":1e400,"y":-1E+999}',
    '{"__proto__":{"a":1},"constructor":2}',
    '{"9007199254740993":"9007199254740993"}',
    '{"a":{"__proto__":12345678901234567890},"b":[-12345678901234567890,[1e999]],"12345678901234567890":"1e999"}',
    `{"n":${'9'.repeat(100_000)}}`,
  ])('%s is written as it was read', (text) => {
    expect(written(text)).toBe(text);
  });

  test('is written as JSON.parse reads it, where that preserves every number', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(written(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  test('holds the last value of a repeated key', () => {
    expect(parsed('{"n":1,"n":2}')).toEqual({ n: 2 });
    expect(written('{"n":12345678901234567891,"n":12345678901234567892}')).toBe('{"n":12345678901234567892}');
  });

  test.each([
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '12345678901234567890'],
    ['nothing', ''],
    ['half an object', '{"a":'],
    ['two objects', '{}{}'],
    ['a number for a key', '{12345678901234567890:1}'],
    ['a number that begins with zeros', '{"a":00012345678901234567890}'],
    ['a number with no fraction', '{"a":12345678901234567890.}'],
    ['two numbers in one', '{"a":12345678901234567890 12345678901234567890}'],
    ['dashes', `{"a":${'-'.repeat(100)}}`],
  ])('is not read from %s', (_, text) => {
    expect(parsed(text)).toBe('malformed');
  });

  test('is not read from bytes that are not UTF-8', () => {
    expect(parseJsonObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe('malformed');
  });
});

describe('the depth of JSON', () => {
  test('may be 128', () => {
    expect(parsed(nested(128))).toBeTypeOf('object');
    expect(parsed(nested(129))).toBe('too_deep');
    expect(parsed('{"a":'.repeat(129))).toBe('too_deep');
  });

  test('does not count closed brackets or the content of strings', () => {
    expect(parsed(`{"a":[${'[],'.repeat(1_000)}1]}`)).toBeTypeOf('object');
    expect(parsed(JSON.stringify({ text: '"\\[{'.repeat(1_000) }))).toBeTypeOf('object');
    expect(parsed(`{"a":"\\\\","b":${'['.repeat(200)}`)).toBe('too_deep');
  });
});

describe('the number of values in JSON', () => {
  test('is bounded, whatever its size', () => {
    expect(parsed(withMarks(maxJsonMarks))).toBeTypeOf('object');
    expect(parsed(withMarks(maxJsonMarks + 1))).toBe('too_many_values');
    expect(parsed(`{${'"a":0,'.repeat(maxJsonMarks / 2)}"b":0}`)).toBe('too_many_values');
    expect(parsed(`{"a":[${'[],'.repeat(maxJsonMarks / 2)}0]}`)).toBe('too_many_values');
  });

  test('counts a number that no double holds as twenty values', () => {
    const long = '12345678901234567890';
    expect(parsed(withMarks(maxJsonMarks / 21, long))).toBeTypeOf('object');
    expect(parsed(withMarks(maxJsonMarks / 20, long))).toBe('too_many_values');
  });

  test('does not count the content of strings', () => {
    expect(parsed(JSON.stringify({ text: ',:[{12345678901234567890'.repeat(maxJsonMarks) }))).toBeTypeOf(
      'object',
    );
  });
});
