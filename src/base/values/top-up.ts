import type { Rate } from './token.ts';

const microsPerUnit = 10n ** 6n;

/**
 * The credit for `atoms` of a token: `rate` is units of the currency per token. In micros, rounded down.
 */
export function topUpMicros(atoms: bigint, decimals: number, rate: Rate): bigint {
  if (atoms < 0n) throw new RangeError('amounts are never negative');
  const divisor = 10n ** BigInt(decimals) * 10n ** BigInt(rate.scale);
  return (atoms * microsPerUnit * rate.numerator) / divisor;
}

/** The most that one payment buys of an offered top-up. */
export const mostTopUpUnits = 100;

export function isTopUpUnits(units: unknown): units is number {
  return typeof units === 'number' && Number.isInteger(units) && units >= 1 && units <= mostTopUpUnits;
}
