import { PERMIT2_ADDRESS, uptoPermit2WitnessTypes, x402UptoPermit2ProxyAddress } from '@x402/evm';
import fc from 'fast-check';
import { bytesToHex, hashTypedData } from 'viem/utils';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import type { Address, Hex } from '../../../../../src/base/values/primitives.ts';
import { decodePayment } from '../../../../../src/payments/rules/decode-payment.ts';
import {
  checkPayment,
  expectedTransfer,
  isSignedByPayer,
  matchOption,
  payableTokens,
  paymentFromData,
  paymentToData,
  readSignedPayment,
  type SignedPayment,
} from '../../../../../src/payments/rules/payment.ts';
import {
  exactProxyAddress,
  uptoProxyAddress,
} from '../../../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { upto, uptoTypedData } from '../../../../../src/payments/rules/schemes/permit2/upto.ts';
import { facilitatorRequest } from '../../../../../src/payments/rules/x402.ts';
import { requirementsV1 } from '../../../../../src/payments/rules/x402-v1.ts';
import { propertyRuns } from '../../../../support/property-runs.ts';
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

const submitter = bytesOf('fa', 20);
const stranger = bytesOf('5a', 20);
const most = 3_264_000n;
const option = { ...anOption, transferMethod: 'upto', submitter } as const;
const nonce = 2n ** 255n + 7n;
const authorization = {
  permitted: { token: asset, amount: String(most) },
  from: payer,
  spender: x402UptoPermit2ProxyAddress,
  nonce: String(nonce),
  deadline: String(nowSecs + 300),
  witness: { to: payee, facilitator: submitter, validAfter: '0' },
};
const permitted = (change: object) => ({ permitted: { ...authorization.permitted, ...change } });
const witness = (change: object) => ({ witness: { ...authorization.witness, ...change } });
const ofExact = { spender: exactProxyAddress, ...witness({ facilitator: undefined }) };

/** As the official client sends it; fields replaced. */
function paid(change: object = {}, outside: object = {}, accepting: object = {}) {
  const { accepted } = eip3009Payload;
  const extra = { ...accepted.extra, assetTransferMethod: 'permit2', facilitatorAddress: submitter };
  return {
    ...eip3009Payload,
    accepted: { ...accepted, scheme: 'upto', extra, ...accepting },
    payload: {
      signature: bytesOf('1b', 65),
      permit2Authorization: { ...authorization, ...change },
      ...outside,
    },
  };
}

/** The reason code of an invalid payment; `none` for a valid one, `undecodable_payment` for one that cannot be recognised. */
function reasonFor(value: unknown, offered: Parameters<typeof checkPayment>[1] = option): string {
  const payment = decodePayment(headerOf(value), 2);
  if (typeof payment === 'string') return payment;
  const checked = checkPayment(payment, offered, window);
  return 'invalid' in checked ? checked.invalid : 'none';
}

function checkedPayment(): SignedPayment {
  const checked = checkPayment(decoded(paid()), option, window);
  if ('invalid' in checked) throw new Error(checked.invalid);
  return checked;
}

test('the address of the contract is that of the official package', () => {
  expect(uptoProxyAddress).toBe(x402UptoPermit2ProxyAddress.toLowerCase());
});

test('what a payer signs for at most an amount is what the official package signs', () => {
  const official = hashTypedData({
    domain: { name: 'Permit2', chainId: 84_532, verifyingContract: PERMIT2_ADDRESS },
    types: uptoPermit2WitnessTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: asset, amount: most },
      spender: x402UptoPermit2ProxyAddress,
      nonce,
      deadline: BigInt(nowSecs + 300),
      witness: { to: payee, facilitator: submitter, validAfter: 0n },
    },
  });
  expect(bytesToHex(upto.digest(checkedPayment()))).toBe(official);
});

test('the facilitator gets the payload that the payer signed and the amount to move, also from the ledger', () => {
  const payment = paymentFromData(paymentToData(checkedPayment()));
  expect(payment).toEqual(checkedPayment());
  const { paymentPayload, paymentRequirements } = facilitatorRequest(payment, bytesOf('e5', 32), {}, 7n);
  expect(paymentPayload.payload).toEqual({
    signature: bytesOf('1b', 65),
    permit2Authorization: { ...authorization, spender: uptoProxyAddress },
  });
  expect(paymentRequirements).toMatchObject({
    scheme: 'upto',
    amount: '7',
    extra: { assetTransferMethod: 'permit2', facilitatorAddress: submitter },
  });
});

test('each token can be paid by its own method and by upto, and the transfer of upto is of at most the amount', () => {
  expect(payableTokens([anOption]).map(({ transferMethod }) => transferMethod)).toEqual(['eip3009', 'upto']);
  expect(expectedTransfer(checkedPayment())).toMatchObject({ transferMethod: 'upto', value: most });
});

test('version 1 clients are not offered a payment of at most an amount', () => {
  const resource = { url: 'http://127.0.0.1/', description: '', mimeType: '' };
  expect(requirementsV1([option], resource, 300)).toEqual([]);
});

test('a payment in one scheme is no payment of an offer in another', () => {
  const exact = { ...anOption, transferMethod: 'permit2' } as const;
  expect(matchOption(decoded(paid()), [exact, anOption])).toBeUndefined();
  expect(matchOption(decoded(eip3009Payload), [option])).toBeUndefined();
  expect(matchOption(decoded(paid(ofExact)), [option])).toBeUndefined();
  // a permit of one scheme under the name of the other
  expect(matchOption(decoded(paid({}, {}, { scheme: 'exact' })), [exact, option])).toBeUndefined();
  expect(matchOption(decoded(paid(ofExact, {}, { scheme: 'upto' })), [exact, option])).toBeUndefined();
  expect(matchOption(decoded(paid()), [exact, option])).toEqual(option);
});

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

describe('a payment of at most an amount', () => {
  test.each([
    ['the spender of the scheme exact', { spender: exactProxyAddress }, 'spender_mismatch'],
    ['a spender that is not a contract of x402', { spender: stranger }, 'spender_mismatch'],
    ['a spender that is not an address', { spender: 'proxy.eth' }, 'spender_mismatch'],
    ['the spender of upto and the witness of exact', witness({ facilitator: undefined }), 'spender_mismatch'],
    ['a permit of the scheme exact', ofExact, 'facilitator_mismatch'],
    ['another facilitator', witness({ facilitator: stranger }), 'facilitator_mismatch'],
    [
      'the zero address as its facilitator',
      witness({ facilitator: bytesOf('00', 20) }),
      'facilitator_mismatch',
    ],
    ['a facilitator that is not an address', witness({ facilitator: 'facilitator' }), 'facilitator_mismatch'],
    ['a facilitator that is no text', witness({ facilitator: null }), 'undecodable_payment'],
    ['another token', permitted({ token: payee }), 'token_mismatch'],
    ['another payee', witness({ to: payer }), 'recipient_mismatch'],
    ['its facilitator as the payee', witness({ to: submitter }), 'recipient_mismatch'],
    ['no witness', { witness: undefined }, 'undecodable_payment'],
    ['one atom too little', permitted({ amount: String(most - 1n) }), 'authorization_value_mismatch'],
    ['one atom too much', permitted({ amount: String(most + 1n) }), 'authorization_value_mismatch'],
    ['an amount of zero', permitted({ amount: '0' }), 'authorization_value_mismatch'],
    ['the greatest amount', permitted({ amount: String(2n ** 256n - 1n) }), 'authorization_value_mismatch'],
    ['an amount of 79 digits', permitted({ amount: '9'.repeat(79) }), 'not_a_decimal'],
    ['an amount in hex', permitted({ amount: '0x31ce00' }), 'not_a_decimal'],
    ['an amount with a leading zero', permitted({ amount: '03264000' }), 'not_a_decimal'],
    ['a negative amount', permitted({ amount: '-3264000' }), 'not_a_decimal'],
    ['a nonce in hex', { nonce: bytesOf('d4', 32) }, 'not_a_decimal'],
    ['a nonce of more than 256 bits', { nonce: String(2n ** 256n) }, 'undecodable_payment'],
    ['a deadline of now', { deadline: String(nowSecs - 1) }, 'authorization_expired'],
    ['too little time to settle', { deadline: String(nowSecs + 14) }, 'authorization_expires_too_soon'],
    ['the greatest deadline', { deadline: String(2n ** 256n - 1n) }, 'authorization_valid_too_long'],
    [
      'a validity that has not begun',
      witness({ validAfter: String(nowSecs) }),
      'authorization_not_yet_valid',
    ],
    ['a second amount beside its permit', { requestedAmount: '1' }, 'unknown_payload_field'],
    ['junk in its witness', witness({ extra: '0x' }), 'unknown_payload_field'],
    ['junk in its permission', permitted({ expiration: '0' }), 'unknown_payload_field'],
  ] satisfies [string, object, string][])('with %s is refused', (_, change, reason) => {
    expect(reasonFor(paid(change))).toBe(reason);
  });

  test('is refused for an offer that names no account, or another one', () => {
    const { submitter: _, ...unnamed } = option;
    expect(reasonFor(paid(), unnamed)).toBe('facilitator_mismatch');
    expect(reasonFor(paid(), { ...option, submitter: stranger })).toBe('facilitator_mismatch');
    expect(reasonFor(paid())).toBe('none');
  });

  const anyText = fc.oneof(fc.string(), anyUint256.map(String), anyAddress);
  const places = [
    ['token', (to: string) => permitted({ token: to }), asset],
    ['amount', (to: string) => permitted({ amount: to }), String(most)],
    ['spender', (to: string) => ({ spender: to }), uptoProxyAddress],
    ['payee', (to: string) => witness({ to }), payee],
    ['facilitator', (to: string) => witness({ facilitator: to }), submitter],
  ] as const;

  test.each(places)('is refused with any other %s', (_, changed, right) => {
    const others = anyText.filter((one) => !isSame(one, right));
    fc.assert(
      fc.property(others, (other) => {
        expect(reasonFor(paid(changed(other)))).toMatch(/^(?!none$)[a-z0-9_]{1,100}$/);
      }),
      propertyRuns(),
    );
  });
});

const readChanged = (change: object) => readSignedPayment(decoded(paid(change)), option);

describe('the signature of a payment of at most an amount', () => {
  const account = privateKeyToAccount(`0x${'17'.repeat(32)}`);
  const from = account.address.toLowerCase() as Address;
  const terms: SignedPayment = { ...checkedPayment(), payer: from };
  const signed = async (over: SignedPayment = terms): Promise<SignedPayment> => ({
    ...terms,
    signature: await account.signTypedData(uptoTypedData(over)),
  });

  test.each<[string, Partial<SignedPayment>]>([
    ['chain', { network: 'eip155:8453' }],
    ['token', { asset: payee }],
    ['payee', { payTo: payer }],
    ['facilitator', { submitter: stranger }],
    ['facilitator, which is none', { submitter: undefined }],
    ['amount', { amount: most - 1n }],
    ['nonce', { nonce: bytesOf('d4', 32) }],
    ['deadline', { validBefore: terms.validBefore + 1n }],
    ['beginning', { validAfter: 1n }],
    ['payer', { payer }],
    ['scheme', { transferMethod: 'permit2' }],
    ['transfer method', { transferMethod: 'eip3009' }],
  ])("is the payer's own, and is not for another %s", async (_, other) => {
    const payment = await signed();
    expect(isSignedByPayer(payment)).toBe(true);
    expect(isSignedByPayer({ ...payment, ...other })).toBe(false);
  });

  test('over any changed number is not of this payment', async () => {
    const payment = await signed();
    const changes = fc.record(
      { amount: anyUint256, validAfter: anyUint256, validBefore: anyUint256.filter((at) => at > 0n) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(changes, (change) => {
        const isChanged = Object.entries(change).some(
          ([key, value]) => payment[key as keyof typeof change] !== value,
        );
        expect(isSignedByPayer({ ...payment, ...change })).toBe(!isChanged);
      }),
      propertyRuns(),
    );
  });

  test.each<[string, object]>([
    ['an amount of more than 256 bits', permitted({ amount: String(2n ** 256n) })],
    ['the greatest deadline', { deadline: String(2n ** 256n - 1n) }],
    ['another spender', { spender: exactProxyAddress }],
    ['a facilitator that is no address', witness({ facilitator: 'no address' as Hex })],
  ])('over %s cannot be read', (_, change) => {
    expect(readChanged({})).toMatchObject({ submitter, amount: most });
    expect(readChanged(change)).toBeUndefined();
  });
});
