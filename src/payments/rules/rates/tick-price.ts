import type { Rate } from '../../../base/values/token.ts';
import { rateOfFraction } from '../../../base/values/rate.ts';

/** The ticks of Uniswap V3 are from -887272 to 887272. */
const maxTick = 887_272;

const bits = 320n;
const one = 1n << bits;
/** 1.0001 in units of 2^-320, rounded down. */
const base = (one * 10_001n) / 10_000n;

/** 1.0001^ticks in units of 2^-320, by repeated squaring: exact to more than 80 digits, and a rate has at most 75. */
function power(ticks: number): bigint {
  let [result, square] = [one, base];
  for (let left = ticks; left > 0; left >>= 1) {
    if ((left & 1) === 1) result = (result * square) >> bits;
    square = (square * square) >> bits;
  }
  return result;
}

interface Pool {
  readonly decimals0: number;
  readonly decimals1: number;
  /** Whether the native unit is the pool's token 0; else it is token 1. */
  readonly isNative0: boolean;
}

/**
 * The tokens that a pool gives for one native unit at a mean tick: 1.0001^tick is what an atom of token 0 costs in atoms of token 1.
 * Undefined for a tick that no pool has.
 */
export function rateOfTick(tick: number, { decimals0, decimals1, isNative0 }: Pool): Rate | undefined {
  if (!Number.isInteger(tick) || Math.abs(tick) > maxTick) return undefined;
  const factor = power(Math.abs(tick));
  // atoms of token 1 for an atom of token 0
  const [up, down] = tick < 0 ? [one, factor] : [factor, one];
  const [tens0, tens1] = [10n ** BigInt(decimals0), 10n ** BigInt(decimals1)];
  return isNative0 ? rateOfFraction(up * tens0, down * tens1) : rateOfFraction(down * tens1, up * tens0);
}

/** The mean tick of a window, rounded down as Uniswap's own library does. */
export function meanTick(cumulativeBefore: bigint, cumulativeAfter: bigint, windowSecs: number): number {
  const [difference, secs] = [cumulativeAfter - cumulativeBefore, BigInt(windowSecs)];
  const quotient = difference / secs;
  return Number(difference < 0n && difference % secs !== 0n ? quotient - 1n : quotient);
}
