import fc from 'fast-check';
import { hashTypedData, toHex } from 'viem/utils';
import { expect, test } from 'vitest';
import { permit2, permit2TypedData } from '../../../../../src/payments/rules/schemes/permit2/permit2.ts';
import { upto, uptoTypedData } from '../../../../../src/payments/rules/schemes/permit2/upto.ts';
import { signedPayment } from '../../payment-support.ts';

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((array) => toHex(array));
const uint256 = fc.bigInt({ min: 1n, max: 2n ** 256n - 1n });

test('the digest of a permit is the one that any EIP-712 encoder makes', () => {
  const fields = { asset: hex(20), payTo: hex(20), nonce: hex(32), amount: uint256, submitter: hex(20) };
  const times = { validAfter: uint256, validBefore: uint256, chainId: fc.integer({ min: 1, max: 2 ** 31 }) };
  fc.assert(
    fc.property(fc.record({ ...fields, ...times }), ({ chainId, ...changed }) => {
      const payment = { ...signedPayment, ...changed, network: `eip155:${chainId}` } as const;
      expect(toHex(permit2.digest(payment))).toBe(hashTypedData(permit2TypedData(payment)));
      expect(toHex(upto.digest(payment))).toBe(hashTypedData(uptoTypedData(payment)));
    }),
  );
});

test('a permit of more than 256 bits has no digest', () => {
  expect(() => permit2.digest({ ...signedPayment, amount: 2n ** 256n })).toThrow(
    'not in safe 256-bit unsigned integer range',
  );
});
