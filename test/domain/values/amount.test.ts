import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tokenAmount } from '../../../src/domain/values/amount.ts';
import type { Rate } from '../../../src/domain/values/token.ts';

const oneEther = 10n ** 18n;
const rateOf = (numerator: bigint, scale = 0): Rate => ({ numerator, scale });

const anyPrice = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n });
const anyRate: fc.Arbitrary<Rate> = fc.record({
  numerator: fc.bigInt({ min: 1n, max: 10n ** 30n - 1n }),
  scale: fc.nat(29),
});
const anyDecimals = fc.nat(36);
const anyMarkup = fc.nat(1_000_000);

describe('the amount of a price', () => {
  test.each([
    ['0.001 ether at 3200.00 and 2 %', 10n ** 15n, rateOf(320_000n, 2), 6, 200, 3_264_000n],
    ['one ether at par', oneEther, rateOf(1n), 18, 0, oneEther],
    ['one ether at par, one basis point more', oneEther, rateOf(1n), 6, 1, 1_000_100n],
    ['twice the price at 100 %', oneEther, rateOf(1n), 6, 10_000, 2_000_000n],
    ['exactly one atom', 312_500_000n, rateOf(3_200n), 6, 0, 1n],
    ['one wei more than one atom', 312_500_001n, rateOf(3_200n), 6, 0, 2n],
    ['one wei less than two atoms', 624_999_999n, rateOf(3_200n), 6, 0, 2n],
    ['one wei', 1n, rateOf(3_200n), 6, 0, 1n],
    ['one wei at a rate close to nothing', 1n, rateOf(1n, 29), 0, 0, 1n],
    ['half a token that has no decimals', oneEther, rateOf(15n, 1), 0, 0, 2n],
    ['a price beyond every float', 10n ** 60n + 1n, rateOf(1n), 18, 0, 10n ** 60n + 1n],
    [
      'the largest price and a rate of thirty digits',
      2n ** 128n - 1n,
      rateOf(999_999_999_999_999_999_999_999_999_999n),
      18,
      0,
      340_282_366_920_938_463_463_374_607_431_427_929_088_079_061_536_536_625_392_568_231_788_545n,
    ],
  ] satisfies [string, bigint, Rate, number, number, bigint][])(
    'of %s',
    (_, priceWei, rate, decimals, markupBps, atoms) => {
      expect(tokenAmount(priceWei, rate, decimals, markupBps)).toBe(atoms);
    },
  );

  test('is the exact amount, rounded up by less than one atom', () => {
    fc.assert(
      fc.property(anyPrice, anyRate, anyDecimals, anyMarkup, (priceWei, rate, decimals, markupBps) => {
        const atoms = tokenAmount(priceWei, rate, decimals, markupBps);
        const exact = product([
          [priceWei, oneEther],
          [rate.numerator, 10n ** BigInt(rate.scale)],
          [10n ** BigInt(decimals), 1n],
          [10_000n + BigInt(markupBps), 10_000n],
        ]);
        expect(isAtMost(exact, [atoms, 1n])).toBe(true);
        expect(isAtMost(exact, [atoms - 1n, 1n])).toBe(false);
      }),
    );
  });

  test('is never zero', () => {
    fc.assert(
      fc.property(anyPrice, anyRate, anyDecimals, anyMarkup, (priceWei, rate, decimals, markupBps) => {
        expect(tokenAmount(priceWei, rate, decimals, markupBps)).toBeGreaterThan(0n);
      }),
    );
  });

  test('never falls when price, rate or markup rise', () => {
    const anyRise = fc.bigInt({ min: 0n, max: 10n ** 30n });
    fc.assert(
      fc.property(
        anyPrice,
        anyRate,
        anyDecimals,
        anyMarkup,
        anyRise,
        (priceWei, rate, decimals, bps, rise) => {
          const atoms = tokenAmount(priceWei, rate, decimals, bps);
          const dearer = { ...rate, numerator: rate.numerator + rise };
          expect(tokenAmount(priceWei + rise, rate, decimals, bps)).toBeGreaterThanOrEqual(atoms);
          expect(tokenAmount(priceWei, dearer, decimals, bps)).toBeGreaterThanOrEqual(atoms);
          expect(tokenAmount(priceWei, rate, decimals, bps + Number(rise % 1_000n))).toBeGreaterThanOrEqual(
            atoms,
          );
        },
      ),
    );
  });

  test('is the same however the rate is written: 3200 or 3200.00', () => {
    fc.assert(
      fc.property(anyPrice, anyRate, fc.nat(10), (priceWei, rate, zeros) => {
        const longer = { numerator: rate.numerator * 10n ** BigInt(zeros), scale: rate.scale + zeros };
        expect(tokenAmount(priceWei, longer, 6, 200)).toBe(tokenAmount(priceWei, rate, 6, 200));
      }),
    );
  });

  test.each([0n, -1n])('of a price of %s wei does not exist', (priceWei) => {
    expect(() => tokenAmount(priceWei, rateOf(1n), 6, 0)).toThrow(RangeError);
  });
});

type Fraction = readonly [numerator: bigint, denominator: bigint];

function product(fractions: readonly Fraction[]): Fraction {
  let whole: Fraction = [1n, 1n];
  for (const [numerator, denominator] of fractions) whole = [whole[0] * numerator, whole[1] * denominator];
  return whole;
}

function isAtMost(left: Fraction, right: Fraction): boolean {
  return left[0] * right[1] <= right[0] * left[1];
}
