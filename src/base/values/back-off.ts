/** How the waits between attempts grow: `firstMs`, then each `factor` times the one before (2 by default), up to `longestMs`. */
export interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly factor?: number;
}

/** @param failures attempts that have failed before the one that is repeated: 0 gives the first wait */
export function backOffMs({ firstMs, longestMs, factor = 2 }: BackOff, failures: number): number {
  return Math.min(longestMs, firstMs * factor ** Math.min(failures, maxExponent));
}

/** Keeps the power finite: 0 times infinity is not a number. */
const maxExponent = 64;

/**
 * A random wait of at most `waitMs`, so that those that failed together do not come back together.
 * @param random from 0 to below 1
 * @param minShare the part of the wait that is not random
 */
export function withJitterMs(waitMs: number, random: number, minShare = 0): number {
  return waitMs * (minShare + random * (1 - minShare));
}
