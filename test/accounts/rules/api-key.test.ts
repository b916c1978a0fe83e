import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiKeyHash, apiKeyRandomBytes, isApiKey, newApiKey } from '../../../src/accounts/rules/api-key.ts';

const anyRandom = fc
  .uint8Array({ minLength: apiKeyRandomBytes, maxLength: apiKeyRandomBytes })
  .map((bytes) => Buffer.from(bytes));

describe('an API key', () => {
  // computed by another program: base62 and zlib's CRC32 in Python
  test.each([
    [
      'ascending bytes',
      Buffer.from(Array.from({ length: 24 }, (_, at) => at)),
      'sk-net-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfBU',
    ],
    ['the largest secret', Buffer.alloc(24, 0xff), 'sk-net-2lFA6LboL2xx0ldQH2K1TdSrwuqMMiME312J8jM'],
    ['the smallest secret', Buffer.alloc(24), 'sk-net-0000000000000000000000000000000000W2UGn'],
  ])('of %s is known', (_, random, key) => {
    expect(newApiKey(random)).toBe(key);
    expect(isApiKey(key)).toBe(true);
  });

  test('is stored as its SHA-256', () => {
    const key = 'sk-net-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfBU';
    expect(apiKeyHash(key)).toBe('bfa1c5228adcd4e7a23d1978e140106ed4d4dac7dd45db9cee5eb9815c440175');
  });

  test('is always accepted, and two secrets never share one', () => {
    fc.assert(
      fc.property(anyRandom, anyRandom, (one, other) => {
        expect(isApiKey(newApiKey(one))).toBe(true);
        expect(newApiKey(one) === newApiKey(other)).toBe(one.equals(other));
      }),
    );
  });

  test('is refused with any one character changed or two neighbours swapped', () => {
    const anyCharacter = fc.stringMatching(/^[0-9A-Za-z]$/);
    fc.assert(
      fc.property(anyRandom, fc.nat(38), anyCharacter, (random, at, character) => {
        const key = newApiKey(random);
        const place = 'sk-net-'.length + at;
        const mistyped = key.slice(0, place) + character + key.slice(place + 1);
        expect(isApiKey(mistyped)).toBe(mistyped === key);
        const swapped =
          key.slice(0, place) + (key[place + 1] ?? '') + (key[place] ?? '') + key.slice(place + 2);
        expect(isApiKey(swapped)).toBe(swapped === key);
      }),
    );
  });

  test.each([
    ['nothing', ''],
    ['a key of another issuer', 'sk-proj-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfBU'],
    ['a line break after it', 'sk-net-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfBU\n'],
    ['one character too few', 'sk-net-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfB'],
    ['one character too many', 'sk-net-000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4eqfBU0'],
    ['an operator token', 'tollbook_abc'],
  ])('is not %s', (_, text) => {
    expect(isApiKey(text)).toBe(false);
  });

  test.each([0, 23, 25, 32])('is not made of %d bytes', (length) => {
    expect(() => newApiKey(Buffer.alloc(length))).toThrow(RangeError);
  });
});
