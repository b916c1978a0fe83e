import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { topUpMicros } from '../../../src/base/values/top-up.ts';

const par = { numerator: 1n, scale: 0 };

describe('the credit for paid tokens', () => {
  test.each([
    ['one micro per atom with six decimals', 10_000_001n, 6, par, 10_000_001n],
    ['rounded down with eighteen decimals', 1_999_999_999_999n, 18, par, 1n],
    ['zero for less than a micro', 999_999_999_999n, 18, par, 0n],
    ['a whole unit per atom without decimals', 3n, 0, par, 3_000_000n],
    [
      'converted at a rate and rounded down',
      1_000_000n,
      6,
      { numerator: 10_812_345_678n, scale: 10 },
      1_081_234n,
    ],
  ])('is %s', (_, atoms, decimals, rate, micros) => {
    expect(topUpMicros(atoms, decimals, rate)).toBe(micros);
  });

  test('is never more than was paid, and lacks less than a micro', () => {
    const cases = fc.tuple(
      fc.bigInt(0n, 2n ** 256n - 1n),
      fc.integer({ min: 0, max: 36 }),
      fc.bigInt(1n, 10n ** 30n),
      fc.integer({ min: 0, max: 30 }),
    );
    fc.assert(
      fc.property(cases, ([atoms, decimals, numerator, scale]) => {
        const micros = topUpMicros(atoms, decimals, { numerator, scale });
        const paid = atoms * numerator * 10n ** 6n;
        const whole = 10n ** BigInt(decimals + scale);
        expect(micros * whole <= paid && (micros + 1n) * whole > paid).toBe(true);
      }),
    );
  });
});
