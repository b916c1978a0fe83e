import { Decimal } from 'decimal.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tokenAmount } from '../../../src/base/values/amount.ts';
import { parseRate } from '../../../src/base/values/rate.ts';
import type { Rate } from '../../../src/base/values/token.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const oneEther = 10n ** 18n;
const rateOf = (numerator: bigint, scale = 0): Rate => ({ numerator, scale });

const anyPrice = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n });
const anyRate: fc.Arbitrary<Rate> = fc.record({
  numerator: fc.bigInt({ min: 1n, max: 10n ** 30n - 1n }),
  scale: fc.nat(29),
});
/** Any price that a quote can have. */
const anyWei = fc.oneof(
  fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }),
  fc.bigInt({ min: 1n, max: 10n ** 20n }),
  fc.nat(76).map((zeros) => 10n ** BigInt(zeros)),
);
const anyDigits = fc.oneof(
  fc.bigInt({ min: 1n, max: 10n ** 117n - 1n }),
  fc.bigInt({ min: 1n, max: 10n ** 9n }),
  fc.nat(116).map((zeros) => 10n ** BigInt(zeros)),
);
/** Any rate below uint256 with at most 40 decimals, as its text. */
const anyRateText = fc.tuple(anyDigits, fc.nat(40)).map(([digits, most]) => {
  const scale = Math.max(most, String(digits).length - 77);
  const text = String(digits).padStart(scale + 1, '0');
  return scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`;
});
const anyDecimals = fc.nat(36);
const anyMarkup = fc.nat(1_000_000);

/** Wide enough for every product of a price, a rate, a markup and a power of ten: exact. */
const Exact = Decimal.clone({ precision: 400, toExpNeg: -500, toExpPos: 500 });

describe('the amount of a price', () => {
  test.each([
    ['0.001 ether at 3200.00 and 2 %', 10n ** 15n, rateOf(320_000n, 2), 6, 200, 3_264_000n],
    ['one ether at par', oneEther, rateOf(1n), 18, 0, oneEther],
    ['one ether at par, one basis point more', oneEther, rateOf(1n), 6, 1, 1_000_100n],
    ['twice the price at 100 %', oneEther, rateOf(1n), 6, 10_000, 2_000_000n],
    ['exactly one atom', 312_500_000n, rateOf(3_200n), 6, 0, 1n],
    ['one wei more than one atom', 312_500_001n, rateOf(3_200n), 6, 0, 2n],
    ['one wei less than two atoms', 624_999_999n, rateOf(3_200n), 6, 0, 2n],
    ['one part of 10^22 more than 9901 atoms', 9_900_009_999_000_099_990_001n, rateOf(1n), 0, 1, 9_902n],
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

  test('is the exact rational of another library, rounded up, and never zero', () => {
    fc.assert(
      fc.property(anyWei, anyRateText, anyDecimals, anyMarkup, (priceWei, text, decimals, markupBps) => {
        const rate = parseRate(text);
        if (!rate) throw new Error(`${text} is not a rate`);
        const amount = tokenAmount(priceWei, rate, decimals, markupBps);
        const exact = new Exact(String(priceWei))
          .times(text)
          .times(new Exact(10).pow(decimals - 18))
          .times(new Exact(10_000 + markupBps).dividedBy(10_000));
        expect(String(amount)).toBe(exact.ceil().toFixed(0));
        expect(amount).toBeGreaterThan(0n);
      }),
      propertyRuns(1_000),
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
