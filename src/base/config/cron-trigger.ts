import { readSchedule } from '../values/triggers/cron-schedule.ts';
import { missedPolicies } from '../values/triggers/due-firings.ts';
import type { Constants } from './constants.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { jobIndex, oneOf, plainName, serviceId } from './values.ts';
import { z } from 'zod';

const text = z.string('must be text');

export const cronTriggerShape = {
  name: plainName.describe('Unique, in logs, metrics and alerts'),
  kind: oneOf(['cron']).describe('What calls the job'),
  service_id: serviceId.describe('Service of the called job'),
  job_index: jobIndex.describe('Its index in the service'),
  schedule: text.describe(
    'Minute, hour, day, month, weekday; seconds may come first; or `@daily` and others',
  ),
  time_zone: text.default('UTC').describe('Time zone, such as `Europe/Berlin`'),
  missed: oneOf(missedPolicies)
    .default('skip')
    .describe('Which times fire that were missed by over a minute'),
} as const;

/** The times of a schedule make calls. */
export type CronTriggerConfig = ConfigOf<typeof cronTriggerShape> & Constants['cronTrigger'];

export async function readCronTrigger(
  raw: unknown,
  at: Path,
  { report, constants }: Reading,
): Promise<CronTriggerConfig | undefined> {
  const { values, whole } = readTable(cronTriggerShape, raw, at, report);
  const { schedule, timeZone } = values;
  if (schedule === undefined || timeZone === undefined) return undefined;
  const answer = readSchedule(schedule, timeZone);
  if (answer.kind === 'schedule') return whole && { ...whole, ...constants.cronTrigger };
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}
