import { PERMIT2_ADDRESS, permit2WitnessTypes, x402ExactPermit2ProxyAddress } from '@x402/evm';
import fc from 'fast-check';
import { bytesToHex, hashTypedData } from 'viem/utils';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { decodePayment } from '../../../../../src/payments/rules/decode-payment.ts';
import {
  checkPayment,
  expectedTransfer,
  isSignedByPayer,
  matchOption,
  noncePart,
  paymentFromData,
  paymentToData,
  readSignedPayment,
  type SignedPayment,
} from '../../../../../src/payments/rules/payment.ts';
import { permit2, permit2TypedData } from '../../../../../src/payments/rules/schemes/permit2/permit2.ts';
import {
  exactProxyAddress,
  nonceBit,
  permit2Address,
} from '../../../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { facilitatorRequest } from '../../../../../src/payments/rules/x402.ts';
import { requirementsV1 } from '../../../../../src/payments/rules/x402-v1.ts';
import type { Address } from '../../../../../src/base/values/primitives.ts';
import { decoded, headerOf, payload as eip3009Payload, window } from '../../payment-support.ts';
import {
  anyAddress,
  anyUint256,
  asset,
  bytesOf,
  nowSecs,
  option as anOption,
  payee,
  payer,
} from '../../support.ts';

const option = { ...anOption, transferMethod: 'permit2' } as const;
const nonce = 2n ** 255n + 7n;
const authorization = {
  permitted: { token: asset, amount: '3264000' },
  from: payer,
  spender: x402ExactPermit2ProxyAddress,
  nonce: String(nonce),
  deadline: String(nowSecs + 300),
  witness: { to: payee, validAfter: '0' },
};
type Changes = Partial<Record<keyof typeof authorization, unknown>>;

/** As the official client sends it; fields replaced. */
function paid(change: Changes | object = {}, outside: object = {}) {
  const permit2Authorization = { ...authorization, ...change };
  const { accepted } = eip3009Payload;
  return {
    ...eip3009Payload,
    accepted: { ...accepted, extra: { ...accepted.extra, assetTransferMethod: 'permit2' } },
    payload: { signature: bytesOf('1b', 65), permit2Authorization, ...outside },
  };
}
const permitted = (change: object) => ({ permitted: { ...authorization.permitted, ...change } });
const witness = (change: object) => ({ witness: { ...authorization.witness, ...change } });

/** The reason code of an invalid payment; `none` for a valid one, `undecodable_payment` for one that cannot be recognised. */
function reasonFor(value: unknown): string {
  const payment = decodePayment(headerOf(value), 2);
  if (typeof payment === 'string') return payment;
  const checked = checkPayment(payment, option, window);
  return 'invalid' in checked ? checked.invalid : 'none';
}

function checkedPayment(): SignedPayment {
  const checked = checkPayment(decoded(paid()), option, window);
  if ('invalid' in checked) throw new Error(checked.invalid);
  return checked;
}

test('the addresses are those of the official package', () => {
  expect(permit2Address).toBe(PERMIT2_ADDRESS.toLowerCase());
  expect(exactProxyAddress).toBe(x402ExactPermit2ProxyAddress.toLowerCase());
});

test('what a payer signs is what the official package signs', () => {
  const payment = checkedPayment();
  const official = hashTypedData({
    domain: { name: 'Permit2', chainId: 84_532, verifyingContract: PERMIT2_ADDRESS },
    types: permit2WitnessTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: asset, amount: 3_264_000n },
      spender: x402ExactPermit2ProxyAddress,
      nonce,
      deadline: BigInt(nowSecs + 300),
      witness: { to: payee, validAfter: 0n },
    },
  });
  expect(bytesToHex(permit2.digest(payment))).toBe(official);
});

test('the facilitator gets the payload that the payer signed, also from the ledger', () => {
  const payment = paymentFromData(paymentToData(checkedPayment()));
  const { paymentPayload, paymentRequirements } = facilitatorRequest(payment, bytesOf('e5', 32));
  expect(paymentPayload.payload).toEqual({
    signature: bytesOf('1b', 65),
    permit2Authorization: { ...authorization, spender: exactProxyAddress },
  });
  expect(paymentRequirements.extra).toMatchObject({ assetTransferMethod: 'permit2' });
});

test('a nonce is a decimal number for clients and 32 bytes in the ledger, unique over all tokens of a network', () => {
  const payment = checkedPayment();
  expect(payment.nonce).toBe(`0x80${'0'.repeat(61)}7`);
  expect(expectedTransfer(payment).nonce).toBe(payment.nonce);
  expect(noncePart(payment, asset)).toBe('');
  expect(nonceBit(payment.nonce)).toEqual({ word: 2n ** 247n, mask: 1n << 7n });
  // the known payment is found however its nonce is spelt
  for (const spelt of [`00${nonce}`, payment.nonce, payment.nonce.toUpperCase().replace('0X', '0x')])
    expect(decoded(paid({ nonce: spelt })).nonce).toBe(payment.nonce);
});

test('the money can still move in the second of its deadline', () => {
  expect(checkedPayment().validBefore).toBe(BigInt(nowSecs + 301));
});

test('version 1 clients are not offered a token that Permit2 moves', () => {
  const resource = { url: 'http://127.0.0.1/', description: '', mimeType: '' };
  expect(requirementsV1([option], resource, 300)).toEqual([]);
});

test('a payment in one transfer method is no payment of an offer in another', () => {
  expect(matchOption(decoded(paid()), [{ ...option, transferMethod: 'eip3009' }])).toBeUndefined();
  expect(matchOption(decoded(eip3009Payload), [option])).toBeUndefined();
  expect(matchOption(decoded(paid()), [option])).toEqual(option);
});

describe('a Permit2 payment', () => {
  test.each([
    ['a spender that is not the contract of x402', { spender: payee }, 'spender_mismatch'],
    [
      'the spender of another scheme',
      { spender: '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002' },
      'spender_mismatch',
    ],
    ['a spender that is not an address', { spender: 'proxy.eth' }, 'spender_mismatch'],
    ['another token', permitted({ token: payee }), 'token_mismatch'],
    ['another payee', witness({ to: payer }), 'recipient_mismatch'],
    ['a payee that is not an address', witness({ to: 'payee.eth' }), 'recipient_mismatch'],
    ['the witness of another scheme', witness({ facilitator: payer }), 'spender_mismatch'],
    ['no witness', { witness: undefined }, 'undecodable_payment'],
    ['one atom too little', permitted({ amount: '3263999' }), 'authorization_value_mismatch'],
    ['one atom too much', permitted({ amount: '3264001' }), 'authorization_value_mismatch'],
    ['an amount of zero', permitted({ amount: '0' }), 'authorization_value_mismatch'],
    ['the greatest amount', permitted({ amount: String(2n ** 256n - 1n) }), 'authorization_value_mismatch'],
    ['an amount of 79 digits', permitted({ amount: '9'.repeat(79) }), 'not_a_decimal'],
    ['an amount in hex', permitted({ amount: '0x31ce00' }), 'not_a_decimal'],
    ['an amount with a leading zero', permitted({ amount: '03264000' }), 'not_a_decimal'],
    ['a negative amount', permitted({ amount: '-3264000' }), 'not_a_decimal'],
    ['a nonce in hex', { nonce: bytesOf('d4', 32) }, 'not_a_decimal'],
    ['a nonce with a leading zero', { nonce: '07' }, 'not_a_decimal'],
    ['a nonce of more than 256 bits', { nonce: String(2n ** 256n) }, 'undecodable_payment'],
    ['a negative nonce', { nonce: '-1' }, 'undecodable_payment'],
    ['validAfter in hex', witness({ validAfter: '0x0' }), 'not_a_decimal'],
    [
      'a validity that has not begun',
      witness({ validAfter: String(nowSecs) }),
      'authorization_not_yet_valid',
    ],
    [
      'the greatest validAfter',
      witness({ validAfter: String(2n ** 256n - 1n) }),
      'authorization_not_yet_valid',
    ],
    ['a deadline of now', { deadline: String(nowSecs - 1) }, 'authorization_expired'],
    ['a deadline long ago', { deadline: '0' }, 'authorization_expired'],
    ['too little time to settle', { deadline: String(nowSecs + 14) }, 'authorization_expires_too_soon'],
    ['a second too much validity', { deadline: String(nowSecs + 360) }, 'authorization_valid_too_long'],
    ['the greatest deadline', { deadline: String(2n ** 256n - 1n) }, 'authorization_valid_too_long'],
    ['junk beside its fields', { chainId: 84_532 }, 'unknown_payload_field'],
    ['junk in its witness', witness({ extra: '0x' }), 'unknown_payload_field'],
    ['junk in its permission', permitted({ expiration: '0' }), 'unknown_payload_field'],
  ] satisfies [string, object, string][])('with %s is refused', (_, change, reason) => {
    expect(reasonFor(paid(change))).toBe(reason);
  });

  test('is refused with a second authorization in its payload, or a signature that a wallet still to be deployed makes', () => {
    const { authorization: other } = eip3009Payload.payload;
    expect(reasonFor(paid({}, { authorization: other }))).not.toBe('none');
    expect(reasonFor(paid({}, { signature: `${bytesOf('1b', 65)}${'6492'.repeat(16)}` }))).toBe(
      'erc6492_signature',
    );
    expect(reasonFor(paid({}, { signature: bytesOf('1b', 64) }))).toBe('malformed_signature');
  });

  test.each([
    ['as the official client makes it', {}],
    ['that began a second ago', witness({ validAfter: String(nowSecs - 1) })],
    ['that ends when settling has to be done', { deadline: String(nowSecs + 15) }],
    ['that ends as late as was offered, a minute of skew included', { deadline: String(nowSecs + 359) }],
    ['with the smallest nonce', { nonce: '0' }],
    ['with the greatest nonce', { nonce: String(2n ** 256n - 1n) }],
  ] satisfies [string, object][])('%s is accepted', (_, change) => {
    expect(reasonFor(paid(change))).toBe('none');
  });

  test('never throws, whatever its fields are, and only one with the offered terms is accepted', () => {
    const anyText = fc.oneof(fc.string(), anyUint256.map(String), anyAddress);
    const mostly = (right: string) => fc.oneof({ weight: 3, arbitrary: fc.constant(right) }, anyText);
    const anyAuthorization = fc.record({
      permitted: fc.record({ token: mostly(asset), amount: mostly('3264000') }),
      from: fc.constant(payer),
      spender: mostly(exactProxyAddress),
      nonce: mostly(String(nonce)),
      deadline: mostly(authorization.deadline),
      witness: fc.record({ to: mostly(payee), validAfter: mostly('0') }),
    });
    fc.assert(
      fc.property(anyAuthorization, (changed) => {
        const reason = reasonFor(paid(changed));
        expect(reason).toMatch(/^[a-z0-9_]{1,100}$/);
        if (reason !== 'none') return;
        expect(changed).toMatchObject({ ...permitted({}), spender: exactProxyAddress });
        expect(changed.witness.to).toBe(payee);
      }),
    );
  });
});

const readChanged = (change: Changes) => readSignedPayment(decoded(paid(change)), option);

describe('the signature of a Permit2 payment', () => {
  const account = privateKeyToAccount(`0x${'17'.repeat(32)}`);
  const from = account.address.toLowerCase() as Address;

  async function signed(
    change: Partial<SignedPayment> = {},
    overMessage: object = {},
  ): Promise<SignedPayment> {
    const payment = { ...checkedPayment(), payer: from, ...change };
    const typed = permit2TypedData(payment);
    const message = { ...typed.message, ...overMessage };
    return { ...payment, signature: await account.signTypedData({ ...typed, message }) };
  }

  test("is recognised as the payer's own, and is not for any other chain, token, payee, amount, nonce or time", async () => {
    const payment = await signed();
    expect(isSignedByPayer(payment)).toBe(true);
    const others: Partial<SignedPayment>[] = [
      { network: 'eip155:8453' },
      { asset: payee },
      { payTo: payer },
      { amount: payment.amount + 1n },
      { nonce: bytesOf('d4', 32) },
      { validBefore: payment.validBefore + 1n },
      { validAfter: 1n },
      { payer },
    ];
    for (const other of others) expect(isSignedByPayer({ ...payment, ...other })).toBe(false);
  });

  test.each([
    ['another spender', { spender: payee }],
    ['another witness', { witness: { to: payee, validAfter: 5n } }],
  ])('over %s is not of this payment', async (_, message) => {
    expect(isSignedByPayer(await signed({}, message))).toBe(false);
  });

  test('is never that of an EIP-3009 transfer, nor the other way round', async () => {
    const payment = await signed();
    expect(isSignedByPayer({ ...payment, transferMethod: 'eip3009' })).toBe(false);
  });

  test('over numbers that no contract takes cannot be read', () => {
    expect(readChanged(permitted({ amount: String(2n ** 256n - 1n) }))).toBeDefined();
    expect(readChanged(permitted({ amount: String(2n ** 256n) }))).toBeUndefined();
    expect(readChanged({ deadline: String(2n ** 256n - 1n) })).toBeUndefined();
    expect(readChanged({ spender: payee })).toBeUndefined();
  });
});
