import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodePayment } from '../../../src/payments/rules/decode-payment.ts';
import { offeredExtensions } from '../../../src/base/values/payment-identifier.ts';
import { decoded, headerOf, payload } from '../../payments/rules/payment-support.ts';

const key = 'payment-identifier';
const offered = offeredExtensions[key];
const withExtensions = (extensions: unknown) => ({ ...payload, extensions });
const withId = (id: unknown) => withExtensions({ [key]: { ...offered, info: { ...offered.info, id } } });
const isOfferedForm = new Ajv2020().compile(offered.schema);

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-';
const idArbitrary = fc.string({
  unit: fc.constantFrom(...alphabet.split('')),
  minLength: 16,
  maxLength: 128,
});

describe("a payment's identifier", () => {
  test('is read where it is 16 to 128 of its alphabet', () => {
    fc.assert(
      fc.property(idArbitrary, (id) => {
        expect(decoded(withId(id)).identifier).toEqual({ id });
      }),
    );
  });

  test('is read or malformed exactly as the offered schema says', () => {
    const nearly = fc.string({
      unit: fc.constantFrom('a', 'Z', '9', '_', '-', '.', 'é', '\n'),
      maxLength: 140,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          idArbitrary,
          nearly,
          fc.jsonValue().filter((id) => id !== null),
        ),
        (id) => {
          const isGood = isOfferedForm({ required: false, id });
          expect(decoded(withId(id)).identifier).toEqual(isGood ? { id } : 'malformed');
        },
      ),
    );
  });

  test.each([
    ['15 characters', withId('a'.repeat(15))],
    ['129 characters', withId('a'.repeat(129))],
    ['a line break at its end', withId(`${'a'.repeat(16)}\n`)],
    ['a space', withId('pay 7d5d747be160e280')],
    ['a number', withId(1_234_567_890_123_456)],
    ['a list', withId(['pay_7d5d747be160e280'])],
    ['no info around it', withExtensions({ [key]: { id: 'pay_7d5d747be160e280' } })],
    ['an info that is a text', withExtensions({ [key]: { info: 'pay_7d5d747be160e280' } })],
    ['a text for the whole entry', withExtensions({ [key]: 'pay_7d5d747be160e280' })],
  ])('of %s is malformed, and the payment is still recognised', (_, value) => {
    const { identifier, nonce } = decoded(value);
    expect(identifier).toBe('malformed');
    expect(nonce).toBe(decoded(payload).nonce);
  });

  test.each([
    ['no extensions', payload],
    ['extensions of null', withExtensions(null)],
    ['extensions that are a list', withExtensions([])],
    ['other extensions only', withExtensions({ bazaar: { info: {} } })],
    ['an entry of null', withExtensions({ [key]: null })],
    ['the offer echoed as it is', withExtensions(offeredExtensions)],
    ['an id of null', withId(null)],
  ])('is absent with %s', (_, value) => {
    expect(decoded(value).identifier).toBeUndefined();
  });

  test('is not read from a version 1 payment', () => {
    const { extensions } = withId('pay_7d5d747be160e280');
    const v1 = {
      x402Version: 1,
      scheme: 'exact',
      network: 'base-sepolia',
      payload: payload.payload,
      extensions,
    };
    expect(decodePayment(headerOf(v1), 1)).toMatchObject({ x402Version: 1, identifier: undefined });
  });
});
