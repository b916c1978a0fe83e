import type { Rate } from '../values/token.ts';

const microsPerUnit = 10n ** 6n;

/**
 * What paid tokens are worth in credit: `atoms` of a token with so many decimals, at `rate` units of the currency a token.
 * Micros, rounded down: a fraction of one is the operator's.
 */
export function topUpMicros(atoms: bigint, decimals: number, rate: Rate): bigint {
  if (atoms < 0n) throw new RangeError('amounts are never negative');
  const divisor = 10n ** BigInt(decimals) * 10n ** BigInt(rate.scale);
  return (atoms * microsPerUnit * rate.numerator) / divisor;
}
