import fc from 'fast-check';
import { formatUnits } from 'viem/utils';
import { describe, expect, test } from 'vitest';
import { usedAtoms } from '../../../src/jobs/rules/used-price.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const cent = { wei: 10n ** 16n, inUsd: true };
const finney = { wei: 10n ** 15n, inUsd: false };
const signed = 10_000n;

test.each<[string, readonly string[], string]>([
  ['no header', [], 'price_missing'],
  ['two headers', ['0.001 USD', '0.001 USD'], 'price_repeated'],
  ['an empty header', [''], 'price_malformed'],
  ['two prices in one header', ['0.001 USD, 0.002 USD'], 'price_malformed'],
  ['no number', ['NaN USD'], 'price_malformed'],
  ['no end', ['Infinity USD'], 'price_malformed'],
  ['a negative price', ['-0.001 USD'], 'price_malformed'],
  ['a sign', ['+0.001 USD'], 'price_malformed'],
  ['an exponent', ['1e-3 USD'], 'price_malformed'],
  ['a hexadecimal number', ['0x1 USD'], 'price_malformed'],
  ['a decimal comma', ['0,001 USD'], 'price_malformed'],
  ['separated thousands', ['0.000_1 USD'], 'price_malformed'],
  ['digits of another script', ['٠.٠٠١ USD'], 'price_malformed'],
  ['a leading zero', ['00.001 USD'], 'price_malformed'],
  ['no digit before the point', ['.001 USD'], 'price_malformed'],
  ['no digit after the point', ['0. USD'], 'price_malformed'],
  ['more digits than a price has', ['0.0010000000000000000 USD'], 'price_malformed'],
  ['a number of a thousand digits', [`${'9'.repeat(1_000)} USD`], 'price_malformed'],
  ['two spaces', ['0.001  USD'], 'price_malformed'],
  ['no space', ['0.001USD'], 'price_malformed'],
  ['small letters', ['0.001 usd'], 'price_malformed'],
  ['another currency', ['0.001 EUR'], 'price_malformed'],
  ['words after it', ['0.001 USD per day'], 'price_malformed'],
  ['a line after it', ['0.001 USD\n'], 'price_malformed'],
  ['a fraction of a wei', ['0.001'], 'price_malformed'],
  ['wei', ['1000000000'], 'price_in_another_unit'],
  ['the smallest unit above the offer', ['0.010000000000000001 USD'], 'price_above_offer'],
  ['the greatest number of digits', [`${'9'.repeat(39)} USD`], 'price_above_offer'],
])('a header with %s says no price that can be charged', (_, values, reason) => {
  expect(usedAtoms(values, cent, signed)).toBe(reason);
});

test('a price in dollars for an offer in wei says no price that can be charged, and neither does one wei above it', () => {
  expect(usedAtoms(['0.001 USD'], finney, signed)).toBe('price_in_another_unit');
  expect(usedAtoms(['0 USD'], finney, signed)).toBe('price_in_another_unit');
  expect(usedAtoms([String(finney.wei + 1n)], finney, signed)).toBe('price_above_offer');
});

test.each<[string, typeof cent, bigint]>([
  ['0.01 USD', cent, signed],
  ['0.003 USD', cent, 3_000n],
  ['0.000001 USD', cent, 1n],
  ['0.000000000000000001 USD', cent, 1n],
  ['0.000001000000000001 USD', cent, 2n],
  ['0 USD', cent, 0n],
  ['0.000 USD', cent, 0n],
  ['0', finney, 0n],
  ['1', finney, 1n],
  ['1000000000000000', finney, signed],
])('%s has used its share of what was signed, rounded up to an atom', (text, quoted, atoms) => {
  expect(usedAtoms([text], quoted, signed)).toBe(atoms);
});

/** What a share of an offer has used, in billionths of its price. */
function usedOf({ wei, inUsd, atoms }: { wei: bigint; inUsd: boolean; atoms: bigint }, share: bigint) {
  const price = (wei * share) / 10n ** 9n;
  const text = inUsd ? `${formatUnits(price, 18)} USD` : String(price);
  const used = usedAtoms([text], { wei, inUsd }, atoms);
  if (typeof used === 'string') throw new Error(`${text}: ${used}`);
  return { price, used };
}

describe('for any offer and any price up to it, what was used', () => {
  const anyOffer = fc.record({
    wei: fc.bigInt({ min: 1n, max: 10n ** 30n }),
    inUsd: fc.boolean(),
    atoms: fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }),
    shares: fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.bigInt({ min: 0n, max: 10n ** 9n })),
  });

  test('is nothing for a price of nothing alone, at most what was signed, and all of it for the whole price', () => {
    fc.assert(
      fc.property(anyOffer, ({ shares: [share], ...offer }) => {
        const { price, used } = usedOf(offer, share);
        expect(used > 0n).toBe(price > 0n);
        expect(used <= offer.atoms).toBe(true);
        expect(usedOf(offer, 10n ** 9n).used).toBe(offer.atoms);
      }),
      propertyRuns(),
    );
  });

  test('is never below its share, and less than an atom above it', () => {
    fc.assert(
      fc.property(anyOffer, ({ shares: [share], ...offer }) => {
        const { price, used } = usedOf(offer, share);
        const excess = used * offer.wei - price * offer.atoms;
        expect(excess >= 0n && excess < offer.wei).toBe(true);
      }),
      propertyRuns(),
    );
  });

  test('is not less for a higher price', () => {
    fc.assert(
      fc.property(anyOffer, ({ shares, ...offer }) => {
        const [lower, higher] = shares
          .map((share) => usedOf(offer, share))
          .toSorted((a, b) => (a.price < b.price ? -1 : 1));
        expect((lower?.used ?? 0n) <= (higher?.used ?? 0n)).toBe(true);
      }),
      propertyRuns(),
    );
  });
});
