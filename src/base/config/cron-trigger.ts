import { readSchedule } from '../values/triggers/cron-schedule.ts';
import { missedPolicies } from '../values/triggers/due-firings.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { jobIndex, oneOf, plainName, serviceId, wholeNumber } from './values.ts';
import { z } from 'zod';

const text = z.string('must be text');

export const cronTriggerShape = {
  name: plainName,
  kind: oneOf(['cron']),
  service_id: serviceId,
  job_index: jobIndex,
  schedule: text,
  time_zone: text.default('UTC'),
  /** What happens to the times that no process fired while they were new. */
  missed: oneOf(missedPolicies).default('skip'),
  /** How many of them fire with `all`: the newest. */
  missed_most: wholeNumber(1, 1_000).default(100),
  /** A time that is older was missed. */
  missed_after_secs: wholeNumber(1, 86_400).default(60),
} as const;

/** The times of a schedule make calls. */
export type CronTriggerConfig = ConfigOf<typeof cronTriggerShape>;

export async function readCronTrigger(
  raw: unknown,
  at: Path,
  { report }: Reading,
): Promise<CronTriggerConfig | undefined> {
  const { values, whole, names } = readTable(cronTriggerShape, raw, at, report);
  const { schedule, timeZone, missed } = values;
  if (missed !== undefined && missed !== 'all' && names('missed_most'))
    report.mistake([...at, 'missed_most'], 'would be ignored: it is for missed = "all"');
  if (schedule === undefined || timeZone === undefined) return undefined;
  const answer = readSchedule(schedule, timeZone);
  if (answer.kind === 'schedule') return whole;
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}
