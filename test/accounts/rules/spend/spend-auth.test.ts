import fc from 'fast-check';
import { bytesToHex, encodeAbiParameters, hashTypedData, keccak256, stringToHex, toHex } from 'viem';
import { privateKeyToAccount, sign } from 'viem/accounts';
import { describe, expect, it, test } from 'vitest';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import {
  atomsOfMicros,
  microsOfAtoms,
  readSpendAuth,
  recoverSpender,
  type SpendAuth,
  spendAuthDigest,
  spendAuthHash,
  type SpendDomain,
  spendTermsRefusal,
} from '../../../../src/accounts/rules/spend/spend-auth.ts';

const golden = {
  commitment: '0x12e85e85751ac07641714acc0df2ca53c291064fc6116793de92a52c3fc670e7',
  serviceId: '1',
  jobIndex: 0,
  amount: '1000000',
  operator: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  nonce: '42',
  expiry: '1900000000',
  signature:
    '0x88820bab777a37fb520aa9d6101945eeb0d69365afcd86e1cec4438546847a241222989e31722060aef5a612c3be6f548a137658af80c541376be376608d1d9f1b',
};
const domain: SpendDomain = { chainId: 31_337, contract: '0x5fbdb2315678afecb367f032d93f642f64180aa3' };
const spender = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';

function read(change: Record<string, unknown> = {}): SpendAuth {
  const auth = readSpendAuth(JSON.stringify({ ...golden, ...change }));
  if ('refusal' in auth) throw new Error(auth.refusal);
  return auth;
}
const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`;
const refusalOf = (header: string) => {
  const auth = readSpendAuth(header);
  return 'refusal' in auth ? auth.refusal : undefined;
};
const refusalWith = (change: Record<string, unknown>) => refusalOf(JSON.stringify({ ...golden, ...change }));

test('the golden spend authorization has the known digest, signer and hash', () => {
  const auth = read();
  expect(bytesToHex(spendAuthDigest(domain, auth))).toBe(
    '0x9386aed76a664abc40b29b59dea2337edf924040587a39feb3d1a6eb1bca25e9',
  );
  expect(recoverSpender(domain, auth)).toBe(spender);
  expect(spendAuthHash(auth)).toBe('0x5eb467ab1d34cce74846e1f2c27f5c2a108f27d9653ec8f34fc5981b695f7c36');
});

describe('a spend authorization header', () => {
  const json = JSON.stringify(golden);
  it('is JSON, or the hexadecimal of it, with and without 0x', () => {
    const hex = stringToHex(json);
    for (const header of [json, hex, hex.slice(2), `0x${hex.slice(2).toUpperCase()}`])
      expect(readSpendAuth(header)).toEqual(read());
  });

  it('may name one commitment, one operator and one signature in upper and lower case: they are the same', () => {
    const { commitment, operator, signature } = golden;
    expect(read({ commitment: upper(commitment), signature: upper(signature) })).toEqual(read());
    expect(read({ operator: upper(operator) })).toEqual(read());
    expect(read().commitment).toBe(commitment);
  });

  it.each(['serviceId', 'jobIndex', 'nonce', 'expiry'] as const)('gives %s as number or text', (key) => {
    const value = Number(golden[key]);
    expect(read({ [key]: value })).toEqual(read({ [key]: String(value) }));
  });

  it('keeps numbers that a double cannot', () => {
    const big = '18446744073709551615';
    const text = json.replace('"serviceId":"1"', `"serviceId":${big}`);
    expect(readSpendAuth(text)).toEqual(read({ serviceId: big }));
  });

  it('cut at any place is refused', () => {
    for (let length = 0; length < json.length; length++) {
      expect(refusalOf(json.slice(0, length))).toBe('invalid_spend_auth');
      expect(refusalOf(stringToHex(json).slice(0, 2 * length))).toBe('invalid_spend_auth');
    }
  });

  it.each(Object.keys(golden))('without %s is refused', (key) => {
    const { [key]: _, ...rest } = golden as Record<string, unknown>;
    expect(refusalOf(JSON.stringify(rest))).toBe('invalid_spend_auth');
  });

  const unreadable: Record<string, Record<string, unknown>> = {
    'with something more': { extra: 1 },
    'with a short commitment': { commitment: golden.commitment.slice(0, -1) },
    'with a commitment that is not a hexadecimal': { commitment: `0x${'g'.repeat(64)}` },
    'with an operator of a wrong checksum': { operator: '0x70997970c51812dc3A010C7d01b50e0d17dc79C8' },
    'with a service beyond uint64': { serviceId: String(2n ** 64n) },
    'with a job index beyond uint8': { jobIndex: 256 },
    'with a negative job index': { jobIndex: -1 },
    'with half a job': { jobIndex: 0.5 },
    'with a nonce beyond uint256': { nonce: String(2n ** 256n) },
    'with a nonce in hexadecimal': { nonce: '0x2a' },
    'with a nonce of leading zeros': { nonce: '042' },
    'with an expiry beyond uint64': { expiry: String(2n ** 64n) },
    'with a service that is a list': { serviceId: [1] },
    'with a service that is nothing': { serviceId: null },
    'with a signature of 64 bytes': { signature: golden.signature.slice(0, -2) },
    'with a v of 0': { signature: `${golden.signature.slice(0, -2)}00` },
    'with a v of 1': { signature: `${golden.signature.slice(0, -2)}01` },
    'with a v of 29': { signature: `${golden.signature.slice(0, -2)}1d` },
    'with a high s': { signature: twin(golden.signature) },
  };
  it.each(Object.entries(unreadable))('%s is refused', (_, change) => {
    expect(refusalWith(change)).toBe('invalid_spend_auth');
  });

  it.each(['0', '-1', '1.5', '1e3', '', ' 1', String(2n ** 256n), '9'.repeat(200)])(
    'with the amount %s is refused as invalid_amount',
    (amount) => expect(refusalWith({ amount })).toBe('invalid_amount'),
  );
  it('with an amount that is a number is refused as invalid_amount', () => {
    expect(refusalWith({ amount: 1_000_000 })).toBe('invalid_amount');
  });
  it('accepts the greatest uint256 amount', () => {
    expect(read({ amount: String(2n ** 256n - 1n) }).amount).toBe(2n ** 256n - 1n);
  });

  it('with any text is refused without an exception', () => {
    const anyText = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((text) => stringToHex(text)),
    );
    fc.assert(
      fc.property(anyText, (text) => {
        expect(refusalOf(text)).toBe('invalid_spend_auth');
      }),
    );
  });
});

/** The other signature of the same key over the same digest. */
function twin(signature: string): Hex {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${signature.slice(0, 66) as Hex}${s}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

test('a spend signature with a high s or a v of 0 has no signer', () => {
  const auth = read();
  expect(recoverSpender(domain, { ...auth, signature: twin(auth.signature) })).toBeUndefined();
  const short = `${auth.signature.slice(0, -2)}00` as Hex;
  expect(recoverSpender(domain, { ...auth, signature: short })).toBeUndefined();
});

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((array) => toHex(array));
const upTo = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n });
const anyAuth = fc.record({
  commitment: hex(32),
  serviceId: upTo(64n),
  jobIndex: fc.integer({ min: 0, max: 255 }),
  amount: upTo(256n),
  operator: hex(20),
  nonce: upTo(256n),
  expiry: upTo(64n),
});
const types = {
  SpendAuthorization: [
    { name: 'commitment', type: 'bytes32' },
    { name: 'serviceId', type: 'uint64' },
    { name: 'jobIndex', type: 'uint8' },
    { name: 'amount', type: 'uint256' },
    { name: 'operator', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'expiry', type: 'uint64' },
  ],
} as const;

test("the digest and hash of a spend equal viem's", () => {
  fc.assert(
    fc.property(anyAuth, fc.integer({ min: 1, max: 2 ** 31 }), hex(20), (auth, chainId, contract) => {
      const signed = { ...auth, signature: '0x' as const };
      const expected = hashTypedData({
        domain: { name: 'ShieldedCredits', version: '1', chainId, verifyingContract: contract },
        types,
        primaryType: 'SpendAuthorization',
        message: auth,
      });
      expect(bytesToHex(spendAuthDigest({ chainId, contract }, signed))).toBe(expected);
      const words = encodeAbiParameters(
        [{ type: 'bytes32' }, { type: 'uint64' }, { type: 'uint8' }, { type: 'uint256' }],
        [auth.commitment, auth.serviceId, auth.jobIndex, auth.nonce],
      );
      expect(spendAuthHash(auth)).toBe(keccak256(words));
    }),
  );
});

test('a change of any signed field, the chain or the contract yields another signer', async () => {
  const privateKey: Hex = `0x${'17'.repeat(32)}`;
  const { address } = privateKeyToAccount(privateKey);
  const auth = read();
  const signature = await sign({ hash: bytesToHex(spendAuthDigest(domain, auth)), privateKey, to: 'hex' });
  const signed = { ...auth, signature };
  expect(recoverSpender(domain, signed)).toBe(address.toLowerCase());
  const edits: Partial<SpendAuth>[] = [
    { commitment: `0x${'11'.repeat(32)}` },
    { serviceId: 2n },
    { jobIndex: 1 },
    { amount: auth.amount + 1n },
    { operator: spender },
    { nonce: 43n },
    { expiry: auth.expiry + 1n },
  ];
  for (const edit of edits)
    expect(recoverSpender(domain, { ...signed, ...edit })).not.toBe(address.toLowerCase());
  expect(recoverSpender({ ...domain, chainId: 1 }, signed)).not.toBe(address.toLowerCase());
  expect(recoverSpender({ ...domain, contract: spender }, signed)).not.toBe(address.toLowerCase());
});

test("a spend outside the operator's terms is refused with the code of the violated term", () => {
  const auth = read();
  const terms = { operator: auth.operator, serviceId: 1n, minCharge: 1_000_000n, maxSpend: 1_000_000n };
  const untilSecs = Number(auth.expiry);
  expect(spendTermsRefusal(auth, terms, untilSecs)).toBeUndefined();
  expect(spendTermsRefusal(auth, terms, untilSecs + 1)).toBe('invalid_spend_auth');
  expect(spendTermsRefusal(auth, { ...terms, operator: spender }, untilSecs)).toBe('operator_mismatch');
  expect(spendTermsRefusal(auth, { ...terms, serviceId: 2n }, untilSecs)).toBe('service_id_mismatch');
  expect(spendTermsRefusal(auth, { ...terms, minCharge: 1_000_001n }, untilSecs)).toBe('below_min_charge');
  expect(spendTermsRefusal(auth, { ...terms, maxSpend: 999_999n }, untilSecs)).toBe('exceeds_max_spend');
});

test('the atoms charged for a price always cover it, and one atom less does not', () => {
  const anyRate = fc.bigInt({ min: 1n, max: 10n ** 24n });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), anyRate, (micros, atomsPerUnit) => {
      const atoms = atomsOfMicros(micros, atomsPerUnit);
      expect(microsOfAtoms(atoms, atomsPerUnit)).toBeGreaterThanOrEqual(micros);
      const fewer = atoms === 0n ? -1n : microsOfAtoms(atoms - 1n, atomsPerUnit);
      expect(fewer).toBeLessThan(micros);
    }),
  );
});
