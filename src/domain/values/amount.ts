import type { Rate } from './token.ts';

const weiPerNativeUnit = 10n ** 18n;
const bpsPerWhole = 10_000n;

/**
 * What a price costs in a token's atoms: wei × rate × (1 + markup), exact, rounded up, never zero.
 * A fraction of an atom is the operator's: rounding down would sell below price.
 */
export function tokenAmount(priceWei: bigint, rate: Rate, decimals: number, markupBps: number): bigint {
  if (priceWei <= 0n) throw new RangeError('a price is at least one wei');
  const dividend = priceWei * rate.numerator * 10n ** BigInt(decimals) * (bpsPerWhole + BigInt(markupBps));
  const divisor = weiPerNativeUnit * 10n ** BigInt(rate.scale) * bpsPerWhole;
  const atoms = (dividend + divisor - 1n) / divisor;
  return atoms > 0n ? atoms : 1n;
}
