import { processEnvironment } from '../../src/base/config/environment.ts';

/** TEST_SLOWNESS: how many times longer everything may take than on two quiet cores, of which each limit leaves a multiple. */
const slowness = Math.max(1, Number(processEnvironment()['TEST_SLOWNESS'] ?? 1));

/** For how long a test waits before it fails. None of them is what a test measures: they end a test that hangs. */
export const timeLimits = {
  /** Of a test and of a hook. */
  testMs: 240_000 * slowness,
  /** Of a test in the rigs: many processes over minutes. */
  rigMs: 900_000 * slowness,
  /** Until a condition must hold. */
  conditionMs: 50_000 * slowness,
} as const;

/**
 * The upper bound of something that ends by itself after `expectedMs` at the latest, if it would otherwise take much longer or never
 * end: a busy machine adds seconds, but no minute.
 */
export function soonMs(expectedMs: number): number {
  return expectedMs + 15_000 * slowness;
}
