import { formatUnits } from 'viem/utils';
import type { AcceptedToken, Rate } from './token.ts';

const weiPerNativeUnit = 10n ** 18n;
/** Units of 10^-18 dollars, as prices of jobs have them, in one micro of credit. */
export const unitsPerMicro = 10n ** 12n;
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

const oneToken: Rate = { numerator: 1n, scale: 0 };

/** What a job costs. */
export interface JobPrice {
  /** In wei; or in units of 10^-18 dollars. */
  readonly wei: bigint;
  /** A token with a peg is worth one dollar, and one without cannot pay for the job. */
  readonly inUsd: boolean;
}

/** A price as a person reads it: `0.01 USD`, or in units of 10^18 wei, `0.001 ether`. */
export function jobPriceText({ wei, inUsd }: JobPrice): string {
  return `${formatUnits(wei, 18)} ${inUsd ? 'USD' : 'ether'}`;
}

/**
 * The price of a job in a token's atoms; undefined where the token cannot pay for it. What is priced in dollars costs the same in every
 * token that is worth one: neither rate nor markup changes it.
 */
export function priceIn(
  { decimals, markupBps, peg }: Pick<AcceptedToken, 'decimals' | 'markupBps' | 'peg'>,
  { wei, inUsd }: JobPrice,
  rate: Rate | undefined,
): bigint | undefined {
  if (inUsd) return peg === 'USD' ? tokenAmount(wei, oneToken, decimals, 0) : undefined;
  return rate && tokenAmount(wei, rate, decimals, markupBps);
}
