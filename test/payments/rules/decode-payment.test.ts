import fc from 'fast-check';
import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { decodePayment as decodeVersion } from '../../../src/payments/rules/decode-payment.ts';
import { nameOf } from '../../../src/payments/rules/payment.ts';
import {
  base64,
  decoded,
  headerOf,
  payload,
  withAccepted,
  withAuthorization,
  withPayload,
} from './payment-support.ts';
import { asset, bytesOf, nonce, payer } from './support.ts';

const header = headerOf(payload);
const maxPaymentHeaderBytes = 16_384;
const decodePayment = (text: string) => decodeVersion(text, 2);

/** A payload without one member, named by its path. */
function without(path: string): unknown {
  const copy = structuredClone(payload);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let holder: unknown = copy;
  for (const key of keys) holder = Reflect.get(holder as object, key);
  if (!Reflect.has(holder as object, last)) throw new Error(`no ${path}`);
  Reflect.deleteProperty(holder as object, last);
  return copy;
}

describe('a payment header', () => {
  test('is decoded to its payment and its quote', () => {
    expect(decodePayment(header)).toMatchObject({
      x402Version: 2,
      network: 'eip155:84532',
      payer,
      nonce,
      terms: { asset, quoteDigest: bytesOf('e5', 32) },
    });
  });

  test.each([
    ['nothing', ''],
    ['garbage', '%%% not a header %%%'],
    ['base64 of garbage', base64('not json')],
    ['base64 of nothing', base64(' ')],
    ['plain JSON', JSON.stringify(payload)],
    ['base64 cut short by a character', header.slice(0, -1)],
    ['base64 cut short by a group', header.slice(0, -4)],
    ['base64 without its padding', headerOf({ ...payload, pad: 'x' }).replaceAll('=', '')],
    ['base64 with a line break', `${header.slice(0, 76)}\r\n${header.slice(76)}`],
    ['base64 with a space before', ` ${header}`],
    ['base64 twice', base64(header)],
    ['two headers joined', `${header}, ${header}`],
    ['bytes that are not UTF-8', base64(Buffer.from(JSON.stringify({ ...payload, a: 'ÿ' }), 'latin1'))],
    ['UTF-16', base64(Buffer.from(JSON.stringify(payload), 'utf16le'))],
  ])('of %s is undecodable', (_, text) => {
    expect(decodePayment(text)).toBe('undecodable_payment');
  });

  test('in base64url is undecodable: the specification says standard base64', () => {
    const standard = headerOf({ ...payload, note: '???>>>' });
    const urlSafe = standard.replaceAll('+', '-').replaceAll('/', '_');
    expect(urlSafe).not.toBe(standard);
    expect(decodePayment(standard)).toBeTypeOf('object');
    expect(decodePayment(urlSafe)).toBe('undecodable_payment');
  });

  test.each([
    ['null', null],
    ['a number', 2],
    ['a string', 'payment'],
    ['a list', [payload]],
    ['an empty object', {}],
    ['no version', without('x402Version')],
    ['version 1', { ...payload, x402Version: 1 }],
    ['version 3', { ...payload, x402Version: 3 }],
    ['a version in quotes', { ...payload, x402Version: '2' }],
    ['no accepted requirement', without('accepted')],
    ['no scheme', without('accepted.scheme')],
    ['no network', without('accepted.network')],
    ['no amount', without('accepted.amount')],
    ['no asset', without('accepted.asset')],
    ['no payee', without('accepted.payTo')],
    ['no payload', without('payload')],
    ['no signature', without('payload.signature')],
    ['no authorization', without('payload.authorization')],
    ['no payer', without('payload.authorization.from')],
    ['no recipient', without('payload.authorization.to')],
    ['no value', without('payload.authorization.value')],
    ['no validAfter', without('payload.authorization.validAfter')],
    ['no validBefore', without('payload.authorization.validBefore')],
    ['no nonce', without('payload.authorization.nonce')],
    ['a value that is a number', withAuthorization({ value: 3_264_000 })],
    ['a time that is a number', withAuthorization({ validBefore: 1_800_000_300 })],
    ['a list where the authorization belongs', withPayload({ authorization: [] })],
    ['a list where extra belongs', withAccepted({ extra: [] })],
    ['a network that is not EVM', withAccepted({ network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' })],
    ['a network by its v1 name', withAccepted({ network: 'base-sepolia' })],
    ['a chain id with a leading zero', withAccepted({ network: 'eip155:084532' })],
    ['a chain id beyond 2^53', withAccepted({ network: 'eip155:9007199254740993' })],
    ['an asset of 19 bytes', withAccepted({ asset: bytesOf('a1', 19) })],
    ['a payer of 21 bytes', withAuthorization({ from: bytesOf('c3', 21) })],
    ['a payer without 0x', withAuthorization({ from: payer.slice(2) })],
    ['a nonce of 31 bytes', withAuthorization({ nonce: bytesOf('d4', 31) })],
    ['a nonce of 33 bytes', withAuthorization({ nonce: bytesOf('d4', 33) })],
    ['a nonce that is not a hex', withAuthorization({ nonce: bytesOf('xy', 32) })],
    ['a nonce with a line break', withAuthorization({ nonce: `${nonce}\n` })],
  ])('of %s is undecodable', (_, value) => {
    expect(decodePayment(headerOf(value))).toBe('undecodable_payment');
  });

  test('of version 1 is decoded to its payment, without an asset or a quote', () => {
    const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payload.payload };
    expect(decodeVersion(headerOf(v1), 1)).toMatchObject({
      x402Version: 1,
      network: 'eip155:84532',
      payer,
      nonce,
      terms: undefined,
    });
    expect(decodeVersion(headerOf({ ...v1, network: 'eip155:84532' }), 1)).toBe('undecodable_payment');
    expect(decodeVersion(headerOf({ ...v1, network: 'solana' }), 1)).toBe('undecodable_payment');
  });

  test('of one version in the header of the other is undecodable', () => {
    const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payload.payload };
    expect(decodeVersion(headerOf(v1), 2)).toBe('undecodable_payment');
    expect(decodeVersion(headerOf(payload), 1)).toBe('undecodable_payment');
  });

  test('of a Permit2 payment is undecodable', () => {
    const permit2Authorization = { permitted: { token: asset, amount: '1' }, from: payer, nonce: '1' };
    const value = { ...payload, payload: { signature: bytesOf('1b', 65), permit2Authorization } };
    expect(decodePayment(headerOf(value))).toBe('undecodable_payment');
  });

  test('is read up to 16 KiB, and not beyond', () => {
    const largest = base64(JSON.stringify(payload).padEnd((maxPaymentHeaderBytes / 4) * 3));
    expect(largest).toHaveLength(16_384);
    expect(decodePayment(largest)).toEqual(decodePayment(header));
    expect(decodePayment(`${largest}AAAA`)).toBe('payment_header_too_large');
    expect(decodePayment('?'.repeat(1_000_000))).toBe('payment_header_too_large');
  });

  test.each([
    ['no extra', without('accepted.extra')],
    ['no digest', withAccepted({ extra: { name: 'USD Coin' } })],
    ['a digest of 31 bytes', withAccepted({ extra: { quoteDigest: bytesOf('e5', 31) } })],
    ['a digest that is an object', withAccepted({ extra: { quoteDigest: {} } })],
  ])('with %s is decoded to its payment, without a quote', (_, value) => {
    const payment = decoded(value);
    expect(payment.terms?.quoteDigest).toBeUndefined();
    expect(payment.nonce).toBe(nonce);
  });
});

describe('the fingerprint of a payment', () => {
  const shuffled = {
    payload: { authorization: { ...payload.payload.authorization }, signature: payload.payload.signature },
    accepted: Object.fromEntries(Object.entries(payload.accepted).toReversed()),
    x402Version: 2,
  };
  test.each([
    ['an upper-case nonce', withAuthorization({ nonce: `0x${'D4'.repeat(32)}` })],
    ['an upper-case prefix', withAuthorization({ nonce: `0X${'d4'.repeat(32)}` })],
    ['an upper-case payer', withAuthorization({ from: `0x${'C3'.repeat(20)}` })],
    ['a checksummed payer', withAuthorization({ from: getAddress(payer) })],
    ['a checksummed asset', withAccepted({ asset: getAddress(asset) })],
    ['a hex value', withAuthorization({ value: '0x31ce00' })],
    ['a value with leading zeros', withAuthorization({ value: '0003264000' })],
    ['another amount', withAccepted({ amount: '1' })],
    ['another payee', withAccepted({ payTo: bytesOf('ff', 20) })],
    ['another quote', withAccepted({ extra: { quoteDigest: bytesOf('00', 32) } })],
    ['another signature', withPayload({ signature: bytesOf('1c', 65) })],
    ['junk beside the version', { ...payload, junk: 1 }],
    ['junk in the requirement', withAccepted({ junk: { deep: [] } })],
    ['junk in the payload', withPayload({ junk: 1 })],
    ['junk in the authorization', withAuthorization({ junk: 1, NONCE: '0x00' })],
    ['its keys in another order', shuffled],
  ])('is the same for a payment with %s', (_, value) => {
    expect(nameOf(decoded(value))).toEqual(nameOf(decoded(payload)));
  });

  test.each([
    ['payer', withAuthorization({ from: bytesOf('c4', 20) })],
    ['nonce', withAuthorization({ nonce: bytesOf('d5', 32) })],
    ['asset', withAccepted({ asset: bytesOf('a2', 20) })],
    ['network', withAccepted({ network: 'eip155:8453' })],
  ])('differs for another %s', (_, value) => {
    expect(nameOf(decoded(value))).not.toEqual(nameOf(decoded(payload)));
  });
});

describe('decoding a payment header', () => {
  const words = ['undecodable_payment', 'payment_header_too_large'];

  test('never throws, whatever the header', () => {
    const anyHeader = fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), fc.string().map(base64));
    fc.assert(
      fc.property(anyHeader, (text) => {
        expect(words).toContain(decodePayment(text));
      }),
    );
  });

  test('never throws, whatever JSON the header holds', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(words).toContain(decodePayment(headerOf(value)));
      }),
    );
  });

  test('never throws for JSON nested as deep as a header can hold', () => {
    expect(decodePayment(base64('['.repeat(12_000)))).toBe('undecodable_payment');
    const deep = `${'{"a":'.repeat(1_900)}1${'}'.repeat(1_900)}`;
    const text = JSON.stringify(withAccepted({ extra: 'DEEP' })).replace('"DEEP"', deep);
    expect(decodePayment(base64(text))).toBeTypeOf('object');
  });
});
