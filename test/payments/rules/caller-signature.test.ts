import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  callerDigest,
  callerMessage,
  type CallerHeaders,
  parseCaller,
  readCallerClaim,
} from '../../../src/payments/rules/caller-signature.ts';
import { parseSignature, recoverSigner } from '../../../src/base/values/ethereum-signature.ts';

interface Vector {
  readonly name: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly body_hex: string;
  readonly nonce: string;
  readonly expiry: number;
  readonly caller: string;
  readonly message: string;
  readonly signature_viem: string;
  readonly signature_anvil: string;
}

/** Signed by viem and, apart from it, by anvil's own `personal_sign`. */
const vectors = readFileSync(new URL('caller-signature.vectors.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

test.each(vectors)('the caller signature of the golden vector "$name" is verified', (vector) => {
  const job = { serviceId: vector.service_id, jobIndex: vector.job_index };
  const body = Buffer.from(vector.body_hex.slice(2), 'hex');
  expect(callerMessage(job, body, vector)).toBe(vector.message);
  for (const text of [vector.signature_viem, vector.signature_anvil]) {
    const signature = parseSignature(text);
    expect(signature && recoverSigner(callerDigest(job, body, vector), signature)).toBe(
      vector.caller.toLowerCase(),
    );
  }
  const other = parseSignature(vector.signature_viem);
  expect(other && recoverSigner(callerDigest(job, Buffer.from('x'), vector), other)).not.toBe(
    vector.caller.toLowerCase(),
  );
});

const [{ caller: address, signature_viem: signature }] = vectors as [Vector];
const nowSecs = 1_800_000_000;
const good: CallerHeaders = { caller: address, signature, nonce: 'n', expiry: String(nowSecs + 60) };
const claimOf = (change: Partial<CallerHeaders>) => readCallerClaim({ ...good, ...change }, nowSecs, 86_400);
const withV = (v: string) => signature.slice(0, -2) + v;
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const highS = `0x${signature.slice(2, 66)}${(order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')}1b`;

test('complete caller credentials are parsed, with the address in lower case', () => {
  expect(claimOf({})).toMatchObject({ caller: address.toLowerCase(), nonce: 'n', expiry: nowSecs + 60 });
});

test.each([
  ['no caller', { caller: undefined }, 'missing_caller'],
  ['an empty caller', { caller: '' }, 'invalid_caller'],
  ['a caller of 19 bytes', { caller: address.slice(0, -2) }, 'invalid_caller'],
  [
    'a caller with a wrong checksum',
    {
      caller: `0x${address.slice(2, 3)}${address
        .slice(3)
        .replace(/[a-f]/, (c) => c.toUpperCase())
        .replace(/[A-F]/, (c) => c.toLowerCase())}`,
    },
    'invalid_caller',
  ],
  ['two callers', { caller: `${address}, ${address}` }, 'invalid_caller'],
  ['no signature', { signature: undefined }, 'missing_signature'],
  ['a signature of 64 bytes', { signature: signature.slice(0, -2) }, 'invalid_signature'],
  ['a signature of 66 bytes', { signature: `${signature}00` }, 'invalid_signature'],
  ['a signature that is not a hex', { signature: `0x${'zz'.repeat(65)}` }, 'invalid_signature'],
  ['a high s', { signature: highS }, 'invalid_signature'],
  ['v of 2', { signature: withV('02') }, 'invalid_signature'],
  ['v of 26', { signature: withV('1a') }, 'invalid_signature'],
  ['v of 29', { signature: withV('1d') }, 'invalid_signature'],
  ['v of 255', { signature: withV('ff') }, 'invalid_signature'],
  ['no nonce', { nonce: undefined }, 'missing_signature_nonce'],
  ['an empty nonce', { nonce: '' }, 'invalid_signature_nonce'],
  ['a nonce with a colon', { nonce: 'a:b' }, 'invalid_signature_nonce'],
  ['a nonce with a space', { nonce: 'a b' }, 'invalid_signature_nonce'],
  ['a nonce with a control character', { nonce: 'a\u0001b' }, 'invalid_signature_nonce'],
  ['a nonce that is not ASCII', { nonce: 'ä' }, 'invalid_signature_nonce'],
  ['a nonce of 129 characters', { nonce: 'n'.repeat(129) }, 'invalid_signature_nonce'],
  ['no expiry', { expiry: undefined }, 'missing_signature_expiry'],
  ['an expiry in milliseconds', { expiry: String((nowSecs + 60) * 1_000) }, 'invalid_signature_expiry'],
  ['a negative expiry', { expiry: '-1' }, 'invalid_signature_expiry'],
  ['an expiry that is not a number', { expiry: 'soon' }, 'invalid_signature_expiry'],
  ['an expiry with a fraction', { expiry: `${nowSecs}.5` }, 'invalid_signature_expiry'],
  ['an expiry beyond the longest', { expiry: String(nowSecs + 86_401) }, 'invalid_signature_expiry'],
  ['an expiry that is over', { expiry: String(nowSecs) }, 'signature_expired'],
  ['an expiry long over', { expiry: '0' }, 'signature_expired'],
] satisfies [string, Partial<CallerHeaders>, string][])(
  'caller credentials with %s are refused as %s',
  (_, change, code) => {
    expect(claimOf(change)).toBe(code);
  },
);

test.each([
  ['v of 0 or 27', ['00', '1b']],
  ['v of 1 or 28', ['01', '1c']],
])('a signature with %s has the same recovery id', (_, [small, large]) => {
  expect(parseSignature(withV(small!))?.recovery).toBe(parseSignature(withV(large!))?.recovery);
});

test.each([
  ['longest nonce', { nonce: '~'.repeat(128) }],
  ['latest expiry', { expiry: String(nowSecs + 86_400) }],
  ['lower-case caller', { caller: address.toLowerCase() }],
  ['upper-case caller', { caller: `0x${address.slice(2).toUpperCase()}` }],
  ['v of 0', { signature: withV('00') }],
])('caller credentials with the %s are accepted', (_, change) => {
  expect(claimOf(change)).toBeTypeOf('object');
});

test('a caller address without 0x is refused', () => {
  expect(parseCaller(address.slice(2))).toBeUndefined();
});
