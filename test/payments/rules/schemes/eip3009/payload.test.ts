import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkPayment, readSignedPayment } from '../../../../../src/payments/rules/payment.ts';
import { decoded, payload, window, withAuthorization, withPayload } from '../../payment-support.ts';
import { anyAddress, anyUint256, bytesOf, nowSecs, option, payee } from '../../support.ts';

/** The reason code of an invalid payment; `none` for a valid one. */
function reasonFor(value: unknown): string {
  const checked = checkPayment(decoded(value), option, window);
  return 'invalid' in checked ? checked.invalid : 'none';
}

describe('an EIP-3009 payment', () => {
  test.each([
    ['a value in hex', { value: '0x31ce00' }, 'not_a_decimal'],
    ['a value with a leading zero', { value: '03264000' }, 'not_a_decimal'],
    ['a value with a plus sign', { value: '+3264000' }, 'not_a_decimal'],
    ['a negative value', { value: '-3264000' }, 'not_a_decimal'],
    ['a value with an exponent', { value: '3264e3' }, 'not_a_decimal'],
    ['a value with a fraction', { value: '3264000.0' }, 'not_a_decimal'],
    ['a value with a space', { value: ' 3264000' }, 'not_a_decimal'],
    ['a value with a line break', { value: '3264000\n' }, 'not_a_decimal'],
    ['a value in other digits', { value: '٣٢٦٤٠٠٠' }, 'not_a_decimal'],
    ['an empty value', { value: '' }, 'not_a_decimal'],
    ['a value of 79 digits', { value: '9'.repeat(79) }, 'not_a_decimal'],
    ['validAfter in hex', { validAfter: '0x0' }, 'not_a_decimal'],
    ['a negative validAfter', { validAfter: '-1' }, 'not_a_decimal'],
    ['validAfter with a leading zero', { validAfter: '00' }, 'not_a_decimal'],
    ['validBefore in hex', { validBefore: `0x${(nowSecs + 300).toString(16)}` }, 'not_a_decimal'],
    ['validBefore with a leading zero', { validBefore: `0${nowSecs + 300}` }, 'not_a_decimal'],
    ['an upper-case nonce', { nonce: `0x${'D4'.repeat(32)}` }, 'nonce_not_lower_case'],
    ['an upper-case prefix', { nonce: `0X${'d4'.repeat(32)}` }, 'nonce_not_lower_case'],
    ['junk beside its fields', { chainId: 84_532 }, 'unknown_payload_field'],
    ['a field in another letter case', { Value: '3264000' }, 'unknown_payload_field'],
    ['another recipient', { to: bytesOf('b3', 20) }, 'recipient_mismatch'],
    ['a recipient that is not an address', { to: 'payee.eth' }, 'recipient_mismatch'],
    ['one atom too little', { value: '3263999' }, 'authorization_value_mismatch'],
    ['one atom too much', { value: '3264001' }, 'authorization_value_mismatch'],
    ['a value of zero', { value: '0' }, 'authorization_value_mismatch'],
    ['a validity that has not begun', { validAfter: String(nowSecs) }, 'authorization_not_yet_valid'],
    ['a validity that has ended', { validBefore: String(nowSecs) }, 'authorization_expired'],
    ['a validity that ended long ago', { validBefore: '0' }, 'authorization_expired'],
    ['too little time to settle', { validBefore: String(nowSecs + 15) }, 'authorization_expires_too_soon'],
    ['a second too much validity', { validBefore: String(nowSecs + 361) }, 'authorization_valid_too_long'],
    ['the greatest validBefore', { validBefore: String(2n ** 256n - 1n) }, 'authorization_valid_too_long'],
  ] satisfies [string, object, string][])('with %s is refused', (_, change, reason) => {
    expect(reasonFor(withAuthorization(change))).toBe(reason);
  });

  test.each(['value', 'validAfter', 'validBefore'])(
    'with a %s of more than 256 bits cannot be read: no signature can be for it',
    (field) => {
      const read = (number: bigint) =>
        readSignedPayment(decoded(withAuthorization({ [field]: String(number) })), option);
      expect(read(2n ** 256n - 1n)).toBeDefined();
      expect(read(2n ** 256n)).toBeUndefined();
    },
  );

  test.each([
    ['began a second ago', { validAfter: String(nowSecs - 1) }],
    ['began at the beginning', { validAfter: '0' }],
    ['ends when settling has to be done', { validBefore: String(nowSecs + 16) }],
    ['ends as late as was offered, a minute of skew included', { validBefore: String(nowSecs + 360) }],
  ] satisfies [string, object][])('that %s is accepted', (_, change) => {
    expect(reasonFor(withAuthorization(change))).toBe('none');
  });

  test.each([
    ['nothing', '', 'malformed_signature'],
    ['only a prefix', '0x', 'malformed_signature'],
    ['64 bytes', bytesOf('1b', 64), 'malformed_signature'],
    ['65 bytes', bytesOf('1b', 65), 'none'],
    ['65 bytes and half of one', `${bytesOf('1b', 65)}1`, 'malformed_signature'],
    ['65 bytes less half of one', bytesOf('1b', 65).slice(0, -1), 'malformed_signature'],
    ['65 bytes without 0x', '1b'.repeat(65), 'malformed_signature'],
    ['letters that are no hex', bytesOf('1g', 65), 'malformed_signature'],
    ['a line break after it', `${bytesOf('1b', 65)}\n`, 'malformed_signature'],
    ['the 4,096 bytes a wallet contract may need', bytesOf('1b', 4_096), 'none'],
    ['4,097 bytes', bytesOf('1b', 4_097), 'malformed_signature'],
  ])('with a signature of %s has the reason %s', (_, signature, wrong) => {
    expect(reasonFor(withPayload({ signature }))).toBe(wrong);
  });
});

describe('checking an EIP-3009 authorization', () => {
  const anyTime = fc.integer({ min: nowSecs - 1_000, max: nowSecs + 1_000 }).map(String);
  const anyText = fc.oneof(fc.string({ unit: 'binary' }), anyUint256.map(String), anyAddress, anyTime);
  const mostly = (right: string) => fc.oneof({ weight: 3, arbitrary: fc.constant(right) }, anyText);
  const { from, nonce, ...signed } = payload.payload.authorization;
  const anyAuthorization = fc.record({
    from: fc.constant(from),
    nonce: fc.constant(nonce),
    to: mostly(signed.to),
    value: mostly(signed.value),
    validAfter: fc.oneof(anyTime, mostly(signed.validAfter)),
    validBefore: fc.oneof(anyTime, mostly(signed.validBefore)),
  });
  const anySignature = mostly(payload.payload.signature);

  test('never throws, and returns a reason code that the ledger accepts', () => {
    fc.assert(
      fc.property(anyAuthorization, anySignature, (authorization, signature) => {
        expect(reasonFor(withPayload({ signature, authorization }))).toMatch(/^[a-z0-9_]{1,100}$/);
      }),
    );
  });

  test('accepts only the offered amount, to the payee, within the time window', () => {
    fc.assert(
      fc.property(anyAuthorization, anySignature, (authorization, signature) => {
        fc.pre(reasonFor(withPayload({ signature, authorization })) === 'none');
        expect(authorization.to).toBe(payee);
        expect(authorization.value).toBe('3264000');
        expect(Number(authorization.validAfter)).toBeLessThan(nowSecs);
        expect(Number(authorization.validBefore)).toBeGreaterThanOrEqual(nowSecs + 16);
        expect(Number(authorization.validBefore)).toBeLessThanOrEqual(nowSecs + 360);
      }),
    );
  });
});
