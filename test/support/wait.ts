import { setTimeout as sleep } from 'node:timers/promises';
import { vi } from 'vitest';
import { metered } from './meter.ts';
import { timeLimits } from './time-limits.ts';

const firstPauseMs = 10;
const longestPauseMs = 100;
// a test may fake the clock
const nowMs = performance.now.bind(performance);

/** Repeats the assertion until it holds. Fails with its last error when it has not held for the time that a condition has. */
export function eventually<T>(assertion: () => T | Promise<T>): Promise<T> {
  return metered('waiting for conditions', () =>
    vi.isFakeTimers()
      ? vi.waitFor(assertion, { timeout: timeLimits.conditionMs, interval: firstPauseMs })
      : repeat(assertion),
  );
}

/** Looks less and less often: each look at a ledger costs the gateway and the database, also while others need the processor. */
async function repeat<T>(assertion: () => T | Promise<T>): Promise<T> {
  const endMs = nowMs() + timeLimits.conditionMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(1.3 * pauseMs, longestPauseMs)) {
    try {
      return await assertion();
    } catch (error) {
      if (nowMs() >= endMs) throw error;
    }
    await sleep(pauseMs);
  }
}
