import { ExactEvmScheme } from '@x402/evm/exact/client';
import fc from 'fast-check';
import { getAddress } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { encodeEventData, type EventData } from '../../../src/ledger/rules/event.ts';
import {
  bindingHash,
  checkPayment,
  matchOption,
  paymentFromData,
  paymentToData,
  type RequestBinding,
  type SignedPayment,
} from '../../../src/payments/rules/payment.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import type { SettlementOption } from '../../../src/payments/rules/quote.ts';
import { facilitatorRequest, offersV2Text, offerTextsV2 } from '../../../src/payments/rules/x402.ts';
import { decoded, payload, signedPayment, window, withAccepted, withPayload } from './payment-support.ts';
import { anyAddress, anyHash, anyId, anyOption, anyUint256, bytesOf, option, payee } from './support.ts';

const check = (value: unknown) => checkPayment(decoded(value), option, window);

/** The reason code of an invalid payment; `none` for a valid one. */
function reasonFor(value: unknown): string {
  const checked = check(value);
  return 'invalid' in checked ? checked.invalid : 'none';
}

describe('a payment', () => {
  test('is accepted with everything that settling it needs', () => {
    expect(check(payload)).toEqual(signedPayment);
  });

  test('is accepted with addresses and signature in any letter case, and kept in lower case', () => {
    const { from, to } = payload.payload.authorization;
    const spelt = withPayload({
      signature: `0x${'1B'.repeat(65)}`,
      authorization: { ...payload.payload.authorization, from: getAddress(from), to: getAddress(to) },
    });
    expect(check(spelt)).toEqual(signedPayment);
  });

  test('of the official client is accepted as it comes', async () => {
    const account = privateKeyToAccount(bytesOf('01', 32));
    const digest = bytesOf('e5', 32);
    const secret = 'known only to its recipient';
    const offers = offersV2Text(offerTextsV2([option], 300), { digest, secret, echoes: undefined });
    const [accepted] = JSON.parse(offers) as [Parameters<ExactEvmScheme['createPaymentPayload']>[1]];
    const signed = await new ExactEvmScheme(account).createPaymentPayload(2, accepted);
    const payment = decoded({ ...signed, accepted });
    expect(payment.terms).toMatchObject({ quoteDigest: digest, offerSecret: secret });
    expect(matchOption(payment, [option])).toBe(option);
    const atOnce = { ...window, nowSecs: Math.floor(Date.now() / 1_000) };
    const taken = checkPayment(payment, option, atOnce);
    expect(taken).toMatchObject({
      payer: account.address.toLowerCase(),
      amount: option.amount,
      payTo: payee,
    });
    if ('invalid' in taken) throw new Error(taken.invalid);
    for (const left of [facilitatorRequest(taken, digest), paymentToData(taken)])
      expect(JSON.stringify(left)).not.toContain(secret);
  });

  test('with junk next to its signature is refused', () => {
    expect(reasonFor(withPayload({ junk: null }))).toBe('unknown_payload_field');
    expect(reasonFor(withPayload({ permit2Authorization: {} }))).toBe('unknown_payload_field');
  });

  test('is sent to the facilitator exactly as signed, without other fields', () => {
    const request = facilitatorRequest(signedPayment, bytesOf('e5', 32));
    expect(request.paymentPayload.payload).toEqual(payload.payload);
    expect(request.paymentRequirements).toEqual(request.paymentPayload.accepted);
    expect(request.paymentRequirements).toEqual({
      ...payload.accepted,
      extra: { ...payload.accepted.extra, assetTransferMethod: 'eip3009', paymentFlow: 'upfront' },
    });
  });
});

describe('the option that a payment means', () => {
  const other: SettlementOption = { ...option, asset: bytesOf('a2', 20), symbol: 'EURC', amount: 3_000_000n };
  const matched = (change: object) => matchOption(decoded(withAccepted(change)), [other, option]);

  test('is the one with its network, asset, amount and payee', () => {
    expect(matched({})).toBe(option);
    expect(matched({ asset: other.asset, amount: '3000000' })).toBe(other);
  });

  test('is found whatever the letter case of its addresses', () => {
    const { asset, payTo } = payload.accepted;
    expect(matched({ asset: getAddress(asset), payTo: getAddress(payTo) })).toBe(option);
    expect(matched({ asset: `0x${'A1'.repeat(20)}`, payTo: `0x${'B2'.repeat(20)}` })).toBe(option);
  });

  test.each([
    ['another scheme', { scheme: 'upto' }],
    ['a scheme in another letter case', { scheme: 'Exact' }],
    ['another network', { network: 'eip155:8453' }],
    ['another asset', { asset: bytesOf('a3', 20) }],
    ["another option's asset", { asset: other.asset }],
    ['one atom less', { amount: '3263999' }],
    ['one atom more', { amount: '3264001' }],
    ["another option's amount", { amount: '3000000' }],
    ['the amount in hex', { amount: '0x31ce00' }],
    ['the amount with a leading zero', { amount: '03264000' }],
    ['another payee', { payTo: bytesOf('b3', 20) }],
    ['a payee that is not an address', { payTo: 'payee.eth' }],
  ] satisfies [string, object][])('is none with %s', (_, change) => {
    expect(matched(change)).toBeUndefined();
  });

  test('is undefined if nothing is offered', () => {
    expect(matchOption(decoded(payload), [])).toBeUndefined();
  });
});

describe('the binding of a payment to its request', () => {
  const binding: RequestBinding = {
    method: 'POST',
    path: '/x402/jobs/1/0',
    bodySha256: sha256('{}'),
    caller: bytesOf('11', 20),
    callerNonce: 'n1',
  };
  const others: Record<keyof RequestBinding, RequestBinding> = {
    method: { ...binding, method: 'PUT' },
    path: { ...binding, path: '/x402/jobs/1/00' },
    bodySha256: { ...binding, bodySha256: sha256('{ }') },
    caller: { ...binding, caller: bytesOf('12', 20) },
    callerNonce: { ...binding, callerNonce: 'n2' },
    callbackUrl: { ...binding, callbackUrl: 'https://hooks.example/' },
  };

  test('is the same for the same request', () => {
    expect(bindingHash({ ...binding })).toBe(bindingHash(binding));
  });

  test.each(Object.entries(others))('changes with %s', (_, other) => {
    expect(bindingHash(other)).not.toBe(bindingHash(binding));
  });

  test('differs for no caller and an empty one, and for parts that concatenate to the same text', () => {
    const hashes = [
      binding,
      { ...binding, caller: undefined },
      { ...binding, callerNonce: undefined },
      { ...binding, callerNonce: 'null' },
      { ...binding, callerNonce: '' },
      { ...binding, method: 'POS', path: 'T/x402/jobs/1/0' },
      { ...binding, method: 'POST","', path: 'x402/jobs/1/0' },
    ].map(bindingHash);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test('is the same for two requests only if they are the same', () => {
    const anyPart = fc.string({ unit: fc.constantFrom('a', '"', ',', '\\', '\n', '[', ' '), maxLength: 3 });
    const anyBinding: fc.Arbitrary<RequestBinding> = fc.record({
      method: anyPart,
      path: anyPart,
      bodySha256: fc.constantFrom(sha256(''), sha256('a')),
      caller: fc.option(fc.constantFrom(bytesOf('11', 20), bytesOf('12', 20)), { nil: undefined }),
      callerNonce: fc.option(anyPart, { nil: undefined }),
    });
    fc.assert(
      fc.property(anyBinding, anyBinding, (one, another) => {
        expect(bindingHash(one) === bindingHash(another)).toBe(partsOf(one) === partsOf(another));
      }),
    );
  });

  test('is SHA-256', () => {
    expect(sha256('abc')).toBe('0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(sha256(new TextEncoder().encode('abc'))).toBe(sha256('abc'));
  });
});

describe('a payment on record', () => {
  const anySignedPayment: fc.Arbitrary<SignedPayment> = fc
    .tuple(
      anyOption,
      fc.record({
        x402Version: fc.constantFrom(1 as const, 2 as const),
        transferMethod: fc.constant('eip3009' as const),
        payer: anyAddress,
        nonce: anyHash,
        validAfter: anyUint256,
        validBefore: anyUint256,
        signature: fc
          .uint8Array({ minLength: 65, maxLength: 200 })
          .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const),
        maxTimeoutSecs: anyId,
      }),
    )
    .map(([terms, rest]) => ({ ...terms, ...rest }));

  test('can be settled again only from its record', () => {
    fc.assert(
      fc.property(anySignedPayment, (any) => {
        expect(paymentFromData(recorded(any))).toEqual(any);
      }),
    );
  });

  test('can hold the longest accepted signature', () => {
    const longest = { ...signedPayment, signature: bytesOf('ff', 4_096) };
    expect(paymentFromData(recorded(longest))).toEqual(longest);
  });
});

function partsOf({ method, path, bodySha256, caller, callerNonce }: RequestBinding): string {
  return JSON.stringify([method, path, bodySha256, caller ?? null, callerNonce ?? null]);
}

/** A payment after it went through the ledger's own encoding. */
function recorded(payment: SignedPayment): EventData<'settlement_started'>['payment'] {
  const text = encodeEventData({
    type: 'settlement_started',
    data: {
      request_id: '0198a1b2-0000-7000-8000-000000000001',
      binding: bytesOf('01', 32),
      body_sha256: bytesOf('02', 32),
      body_bytes: 2,
      payment: paymentToData(payment),
    },
  });
  return (JSON.parse(text) as EventData<'settlement_started'>).payment;
}
