import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, type CanonicalValue } from '../../../src/base/values/canonical-json.ts';

const { value: anyValue } = fc.letrec<{ value: CanonicalValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.string({ unit: 'binary', maxLength: 5 }), tie('value'), { maxKeys: 5 }),
  ),
}));

describe('canonical JSON', () => {
  test("sorts keys by UTF-16 code units, as in RFC 8785's example", () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    expect(canonicalJson(value)).toBe(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
        '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  test("escapes what must be escaped and nothing else, as in RFC 8785's example", () => {
    const value = { string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/', literals: [null, true, false] };
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  test('writes control characters in the short form where there is one, in lower-case hex elsewhere', () => {
    expect(canonicalJson('\b\t\n\f\r\u0000\u001f\u007f\u2028')).toBe(
      '"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\u2028"',
    );
  });

  test('sorts at every depth and keeps the order of lists', () => {
    expect(canonicalJson({ b: [{ d: 1, c: 2 }, 3], a: {} })).toBe('{"a":{},"b":[{"c":2,"d":1},3]}');
  });

  test('sorts keys that look like numbers as text', () => {
    expect(canonicalJson({ 10: 'ten', 9: 'nine', a: '' })).toBe('{"10":"ten","9":"nine","a":""}');
  });

  test('leaves out members that are undefined', () => {
    expect(canonicalJson({ a: undefined, b: 1, c: undefined })).toBe('{"b":1}');
  });

  test.each([
    [0, '0'],
    [-0, '0'],
    [-7, '-7'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [Number.MIN_SAFE_INTEGER, '-9007199254740991'],
  ])('writes the integer %d as %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test.each([0.1, 1e-7, 2 ** 53, -(2 ** 53), 1e21, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses %d, at any depth',
    (value) => {
      expect(() => canonicalJson(value)).toThrow(TypeError);
      expect(() => canonicalJson({ a: [{ b: value }] })).toThrow(TypeError);
    },
  );

  test('says exactly the value', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(value);
      }),
    );
  });

  test('is the same text whatever order the keys were set in', () => {
    fc.assert(
      fc.property(anyValue, fc.compareFunc<string>(), (value, order) => {
        expect(canonicalJson(reordered(value, order))).toBe(canonicalJson(value));
      }),
    );
  });

  test('is the same text after it was read back', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text) as CanonicalValue)).toBe(text);
      }),
    );
  });
});

function reordered(value: CanonicalValue, order: (a: string, b: string) => number): CanonicalValue {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((member: CanonicalValue) => reordered(member, order));
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => order(a, b))
      .map(([key, member]) => [key, member === undefined ? undefined : reordered(member, order)]),
  );
}
