import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../src/base/config/config.ts';
import { soonMs } from './time-limits.ts';

const minuteMs = 60_000;
/** What a test needs that counts requests until one is over the budget. */
const neededMs = soonMs(0);
/** A larger budget is not counted out by a test. */
const smallBudget = 10;

/**
 * Budgets count by the clock's minute, and those of the minute before count less and less. A test with a small budget begins where the
 * minute does not end in the middle of it.
 */
export async function untilMinuteLasts({ limits }: Config): Promise<void> {
  const { requestsPerMinute } = limits;
  if (requestsPerMinute === 0 || requestsPerMinute > smallBudget) return;
  const leftMs = minuteMs - (Date.now() % minuteMs);
  if (leftMs < neededMs) await sleep(leftMs);
}
