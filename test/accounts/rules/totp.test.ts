import { expect, test } from 'vitest';
import { base32, fromBase32, totpCode, totpStep, totpUri } from '../../../src/accounts/rules/totp.ts';

const secret = Buffer.from('12345678901234567890');

test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('the code at %s seconds is that of RFC 6238', (secs, code) => {
  expect(totpCode(secret, secs * 1_000)).toBe(code);
});

test('a code is good in its own step and the adjacent ones, and nowhere else', () => {
  const at = 1_000_000 * 30_000;
  const code = totpCode(secret, at);
  expect([-60_000, -30_000, 0, 30_000, 60_000].map((by) => totpStep(secret, code, at + by))).toEqual([
    undefined,
    1_000_000,
    1_000_000,
    1_000_000,
    undefined,
  ]);
});

test.each(['', '12345', '1234567', '12 456', 'abcdef', '１２３４５６'])('%j is not a code', (text) => {
  expect(totpStep(secret, text, 0)).toBeUndefined();
});

test.each([
  ['', ''],
  ['f', 'MY'],
  ['fo', 'MZXQ'],
  ['foo', 'MZXW6'],
  ['foob', 'MZXW6YQ'],
  ['fooba', 'MZXW6YTB'],
  ['foobar', 'MZXW6YTBOI'],
])('%j in base32 is that of RFC 4648', (text, encoded) => {
  expect(base32(Buffer.from(text))).toBe(encoded);
  expect(fromBase32(encoded.toLowerCase())?.toString() ?? '').toBe(text);
});

test('a secret that is not base32 is refused', () => {
  expect(fromBase32('MZXW1')).toBeUndefined();
});

test('an authenticator app reads issuer, name and secret of the address', () => {
  const uri = new URL(totpUri(secret, 'Test & book', 'ada'));
  expect(uri.protocol).toBe('otpauth:');
  expect(uri.searchParams.get('issuer')).toBe('Test & book');
  expect(uri.searchParams.get('secret')).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
});
