import { Cron } from 'croner';

/** The times of a cron expression in a time zone. Times are Unix milliseconds, always whole seconds. */
export interface CronSchedule {
  /** The first time after this one; undefined if there is none. */
  next(afterMs: number): number | undefined;
  /** The last time before this one; undefined if there is none. */
  before(beforeMs: number): number | undefined;
}

export type ScheduleAnswer =
  | { readonly kind: 'schedule'; readonly schedule: CronSchedule }
  /** The mistake, in the form that follows the key's name. */
  | { readonly kind: 'mistake'; readonly at: 'schedule' | 'time_zone'; readonly text: string };

/** Five or six fields, or a nickname: the library also takes a date, which is not a schedule. */
const form = /^(?:@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)|\S+(?: +\S+){4,5})$/i;
/** Every possible schedule without a year has a time within the 400 years from here, after which weekdays repeat. */
const reference = new Date('2000-01-01T00:00:00Z');

/**
 * Reads a cron expression: five fields, or six with seconds first, or a nickname such as `@daily`. In a time zone with daylight saving
 * time, as Vixie cron has it: a schedule of fixed hours and minutes fires once on each day, at the end of the gap if the
 * clock skips its time, and only at the first of two such times; any other fires at each time that the wall clock shows.
 */
export function readSchedule(text: string, timeZone: string): ScheduleAnswer {
  if (!isTimeZone(timeZone))
    return { kind: 'mistake', at: 'time_zone', text: 'must be a time zone, such as "Europe/Berlin"' };
  if (!form.test(text))
    return {
      kind: 'mistake',
      at: 'schedule',
      text: 'must have five fields (minute hour day month weekday), six with seconds first, or be a nickname such as @daily',
    };
  let cron: Cron;
  try {
    cron = new Cron(text, {
      timezone: timeZone,
      mode: '5-or-6-parts',
      fixedTimeRule: 'no-wildcard',
      paused: true,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    return { kind: 'mistake', at: 'schedule', text: `is not a cron expression: ${reason}` };
  }
  if (!cron.nextRun(reference))
    return { kind: 'mistake', at: 'schedule', text: 'has no time at which it fires' };
  const schedule: CronSchedule = {
    next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime(),
    before: (beforeMs) => cron.previousRuns(1, new Date(beforeMs))[0]?.getTime(),
  };
  return { kind: 'schedule', schedule };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
