import type { Rate } from './token.ts';

const weiPerNativeUnit = 10n ** 18n;
const bpsPerWhole = 10_000n;

/**
 * A price in a token's atoms: wei × rate × (1 + markup), exact, rounded up, never zero. Rounding down would sell below price.
 * @throws RangeError for a price below one wei
 */
export function tokenAmount(priceWei: bigint, rate: Rate, decimals: number, markupBps: number): bigint {
  if (priceWei <= 0n) throw new RangeError('a price must be at least one wei');
  const dividend = priceWei * rate.numerator * 10n ** BigInt(decimals) * (bpsPerWhole + BigInt(markupBps));
  const divisor = weiPerNativeUnit * 10n ** BigInt(rate.scale) * bpsPerWhole;
  const atoms = (dividend + divisor - 1n) / divisor;
  return atoms > 0n ? atoms : 1n;
}
