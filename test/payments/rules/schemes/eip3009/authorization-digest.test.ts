import fc from 'fast-check';
import { hashTypedData, toHex } from 'viem/utils';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { authorizationDigest } from '../../../../../src/payments/rules/schemes/eip3009/authorization-digest.ts';
import { isSignedByPayer, type SignedPayment } from '../../../../../src/payments/rules/payment.ts';
import type { Address, Hex } from '../../../../../src/base/values/primitives.ts';
import { authorizationTypes } from '../../../../support/payer.ts';
import { signedPayment } from '../../payment-support.ts';

function typedData(payment: SignedPayment) {
  const { payer: from, payTo: to, amount: value, validAfter, validBefore, nonce } = payment;
  const domain = {
    name: payment.eip712Name,
    version: payment.eip712Version,
    chainId: Number(payment.network.split(':')[1]),
    verifyingContract: payment.asset,
  };
  const message = { from, to, value, validAfter, validBefore, nonce };
  return { domain, types: authorizationTypes, primaryType: 'TransferWithAuthorization', message } as const;
}

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((array) => toHex(array));
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const anyPayment: fc.Arbitrary<SignedPayment> = fc
  .record({
    asset: hex(20),
    payer: hex(20),
    payTo: hex(20),
    nonce: hex(32),
    amount: uint256,
    validAfter: uint256,
    validBefore: uint256,
    eip712Name: fc.string({ minLength: 1, maxLength: 64 }),
    eip712Version: fc.string({ minLength: 1, maxLength: 8 }),
    chainId: fc.integer({ min: 1, max: 2 ** 31 }),
  })
  .map(({ chainId, ...fields }) => ({ ...signedPayment, ...fields, network: `eip155:${chainId}` }));

test('the digest is the one that any EIP-712 encoder makes', () => {
  fc.assert(
    fc.property(anyPayment, (payment) => {
      expect(toHex(authorizationDigest(payment))).toBe(hashTypedData(typedData(payment)));
    }),
  );
});

test('a number of more than 256 bits has no digest, and leaves that of the next payment alone', () => {
  const digest = authorizationDigest(signedPayment);
  expect(() => authorizationDigest({ ...signedPayment, amount: 2n ** 256n })).toThrow(RangeError);
  expect(authorizationDigest(signedPayment)).toEqual(digest);
});

test("a payer's own signature is recognised, and no other", async () => {
  const account = privateKeyToAccount(`0x${'17'.repeat(32)}`);
  const payment = { ...signedPayment, payer: account.address.toLowerCase() as Address };
  const signature: Hex = await account.signTypedData(typedData(payment));
  expect(isSignedByPayer({ ...payment, signature })).toBe(true);
  expect(isSignedByPayer({ ...payment, signature, amount: payment.amount + 1n })).toBe(false);
  expect(isSignedByPayer({ ...payment, signature, payer: signedPayment.payer })).toBe(false);
});
