import type { UsageSums } from '../../../chat/store/usage.ts';

/** What was used, in whole numbers; `cost` in micros. */
export interface UsageTotals {
  readonly requests: bigint;
  readonly failed: bigint;
  readonly promptTokens: bigint;
  readonly completionTokens: bigint;
  /** Of the prompts'. */
  readonly cachedTokens: bigint;
  readonly cost: bigint;
}

/** Consecutive days, first and last included, and their usage. */
export interface UsagePeriod {
  readonly from: string;
  readonly to: string;
  readonly totals: UsageTotals;
}

export type Step = 'day' | 'week' | 'month';

/** So that a chart has at most 35 bars, and its table as many rows. */
const maxDays = 35;
const maxDaysByWeek = 140;
const dayMs = 86_400_000;

export function stepOf(from: string, to: string): Step {
  const days = daysApart(from, to) + 1;
  return days <= maxDays ? 'day' : days <= maxDaysByWeek ? 'week' : 'month';
}

/**
 * The periods from one day to another, oldest first, those without use among them: days, weeks from Monday on or calendar months,
 * the first and the last cut to these days.
 * @param rows by day, in any order
 */
export function periodsOf(from: string, to: string, rows: readonly UsageSums[]): UsagePeriod[] {
  const step = stepOf(from, to);
  const toMs = Date.parse(to);
  const periods: UsagePeriod[] = [];
  // in milliseconds: texts of years above 9999 have no order
  for (let firstMs = Date.parse(from); firstMs <= toMs;) {
    const lastMs = Math.min(lastDayMs(step, firstMs), toMs);
    const [first, last] = [dayOf(firstMs), dayOf(lastMs)];
    const own = rows.filter(({ day }) => day !== null && day >= first && day <= last);
    periods.push({ from: first, to: last, totals: totalsOf(own) });
    firstMs = lastMs + dayMs;
  }
  return periods;
}

/** The sum of rows. */
export function totalsOf(rows: readonly UsageSums[]): UsageTotals {
  const sum = (
    name: 'requests' | 'failed' | 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'cost',
  ) => rows.reduce((total, row) => total + BigInt(row[name]), 0n);
  return {
    requests: sum('requests'),
    failed: sum('failed'),
    promptTokens: sum('prompt_tokens'),
    completionTokens: sum('completion_tokens'),
    cachedTokens: sum('cached_tokens'),
    cost: sum('cost'),
  };
}

/** Below zero if `to` is before `from`. */
export function daysApart(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / dayMs;
}

/** The day this many days before another one. */
export function daysBefore(day: string, days: number): string {
  return dayOf(Date.parse(day) - days * dayMs);
}

/** The last day of the period in which a day is. */
function lastDayMs(step: Step, ms: number): number {
  const date = new Date(ms);
  switch (step) {
    case 'day':
      return ms;
    case 'week':
      return ms + ((7 - date.getUTCDay()) % 7) * dayMs;
    case 'month':
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0);
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
