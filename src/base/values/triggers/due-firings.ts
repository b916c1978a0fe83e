import type { CronSchedule } from './cron-schedule.ts';

/** The treatment of missed times: none fires, the last one, or all. */
export const missedPolicies = ['skip', 'last', 'all'] as const;
export type MissedPolicy = (typeof missedPolicies)[number];

export interface MissedTerms {
  readonly missed: MissedPolicy;
  /** Of the missed times, at most this many fire with `all`: the newest. */
  readonly missedMost: number;
  /** A time that is older than this was missed. */
  readonly missedAfterSecs: number;
}

export interface DueFirings {
  /** Unix milliseconds, the oldest first. */
  readonly times: readonly number[];
  /** How many missed times do not fire; counted up to `mostCounted`. */
  readonly skipped: number;
  /** Every time up to here is one of them: now, or the last of them if there are more. */
  readonly untilMs: number;
}

/** This many due times are handled in one step: to find one takes about 0.2 ms, in which the process does nothing else. */
const mostAtOnce = 100;

/** More skipped times are not counted one by one. */
const mostCounted = 100;

/**
 * The times after `fromMs` and up to `nowMs` that fire now. `last` fires the last missed time alone, and not even that if a newer
 * time is on time.
 */
export function dueFirings(
  schedule: CronSchedule,
  { missed, missedMost, missedAfterSecs }: MissedTerms,
  fromMs: number,
  nowMs: number,
): DueFirings {
  const missedUntilMs = nowMs - missedAfterSecs * 1_000;
  const onTime: number[] = [];
  let time = schedule.next(Math.max(fromMs, missedUntilMs));
  for (; time !== undefined && time <= nowMs && onTime.length < mostAtOnce; time = schedule.next(time))
    onTime.push(time);
  const isAll = time === undefined || time > nowMs;
  const untilMs = isAll ? nowMs : (onTime.at(-1) ?? nowMs);
  if (fromMs >= missedUntilMs) return { times: onTime, skipped: 0, untilMs };
  const most = { skip: 0, last: onTime.length === 0 ? 1 : 0, all: missedMost }[missed];
  const late: number[] = [];
  let before = schedule.before(missedUntilMs + 1);
  for (; before !== undefined && before > fromMs; before = schedule.before(before)) {
    if (late.length === most + mostCounted) break;
    late.push(before);
  }
  return {
    times: [...late.slice(0, most).toReversed(), ...onTime],
    skipped: Math.max(0, late.length - most),
    untilMs,
  };
}
