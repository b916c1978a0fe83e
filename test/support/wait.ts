import { vi } from 'vitest';
import { metered } from './meter.ts';
import { timeLimits } from './time-limits.ts';

/** Repeats the assertion until it holds. Fails with its last error when it has not held for the time that a condition has. */
export function eventually<T>(assertion: () => T | Promise<T>): Promise<T> {
  return metered('waiting for conditions', () =>
    vi.waitFor(assertion, { timeout: timeLimits.conditionMs, interval: 10 }),
  );
}
