import { describe, expect, test } from 'vitest';
import { type CronSchedule, readSchedule } from '../../../../src/base/values/triggers/cron-schedule.ts';
import { dueFirings, type MissedTerms } from '../../../../src/base/values/triggers/due-firings.ts';

function scheduleOf(text: string, timeZone = 'UTC'): CronSchedule {
  const answer = readSchedule(text, timeZone);
  if (answer.kind !== 'schedule') throw new Error(answer.text);
  return answer.schedule;
}

/** The times after one time and up to another. */
function timesOf(schedule: CronSchedule, from: string, to: string): string[] {
  const times: string[] = [];
  let time = schedule.next(Date.parse(from));
  for (; time !== undefined && time <= Date.parse(to); time = schedule.next(time))
    times.push(new Date(time).toISOString());
  return times;
}

const timeAt = (time: string): number => Date.parse(`2026-11-23T${time}Z`);

describe('a schedule', () => {
  test.each([
    ['schedule', '', 'UTC', /must have five fields/],
    ['schedule', '* * *', 'UTC', /must have five fields/],
    ['schedule', '2030-01-23T00:00:00', 'UTC', /must have five fields/],
    ['schedule', '@reboot', 'UTC', /must have five fields/],
    ['schedule', '0 0 1 1 * 2030 7', 'UTC', /must have five fields/],
    ['schedule', '61 * * * *', 'UTC', /is not a cron expression: Invalid value for minute: 61/],
    ['schedule', '0 0 31 2 *', 'UTC', /has no time at which it fires/],
    ['time_zone', '* * * * *', 'Europe/Nowhere', /must be a time zone/],
  ])('whose %s is wrong is refused: %j in %s', (at, text, timeZone, reason) => {
    const answer = readSchedule(text, timeZone);
    expect(answer).toMatchObject({ kind: 'mistake', at, text: expect.stringMatching(reason) });
  });

  test('of one hour and minute fires once on each day in a zone with daylight saving time', () => {
    const daily = scheduleOf('30 2 * * *', 'Europe/Berlin');
    expect(timesOf(daily, '2026-03-28T00:00Z', '2026-03-31T00:00Z')).toEqual([
      '2026-03-28T01:30:00.000Z',
      // 2:30 does not exist: the clock goes from 2:00 to 3:00
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ]);
    expect(timesOf(daily, '2026-10-24T00:00Z', '2026-10-27T00:00Z')).toEqual([
      '2026-10-24T00:30:00.000Z',
      // 2:30 comes twice: at 0:30 and at 1:30
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ]);
  });

  test('of several fixed hours fires at each of them once on a day on which the clock changes', () => {
    const twice = scheduleOf('30 2,14 * * *', 'Europe/Berlin');
    expect(timesOf(twice, '2026-03-29T00:00Z', '2026-03-29T22:00Z')).toEqual([
      '2026-03-29T01:00:00.000Z',
      '2026-03-29T12:30:00.000Z',
    ]);
    expect(timesOf(twice, '2026-10-24T22:00Z', '2026-10-25T22:00Z')).toEqual([
      '2026-10-25T00:30:00.000Z',
      '2026-10-25T13:30:00.000Z',
    ]);
  });

  test('of every hour fires every 60 minutes on days on which the clock changes', () => {
    const hourly = scheduleOf('0 * * * *', 'Europe/Berlin');
    for (const day of ['2026-03-28T22:59:00Z', '2026-10-24T21:59:00Z']) {
      const to = new Date(Date.parse(day) + 24 * 3_600_000).toISOString();
      const times = timesOf(hourly, day, to).map((time) => Date.parse(time));
      expect(times).toHaveLength(24);
      expect(times.every((time, at) => at === 0 || time - (times[at - 1] ?? 0) === 3_600_000)).toBe(true);
    }
  });

  test('has the same times forwards and backwards, in zones with and without changes of the clock', () => {
    const zones = [
      'UTC',
      'Europe/Berlin',
      'Australia/Lord_Howe',
      'America/New_York',
      'Africa/Casablanca',
      'Asia/Kathmandu',
    ];
    const schedules = [
      '30 2 * * *',
      '*/30 2 * * *',
      '15,45 1-3 * * *',
      '0 0 * * *',
      '59 23 L * *',
      '0 0 2,3 * * *',
    ];
    for (const timeZone of zones)
      for (const text of schedules)
        for (const day of ['2026-03-20', '2026-10-20', '2026-04-01', '2026-02-10']) {
          const schedule = scheduleOf(text, timeZone);
          const [fromMs, toMs] = [Date.parse(day), Date.parse(day) + 12 * 86_400_000];
          const forwards = timesOf(schedule, day, new Date(toMs).toISOString());
          const backwards: string[] = [];
          let time = schedule.before(toMs + 1);
          for (; time !== undefined && time > fromMs; time = schedule.before(time))
            backwards.push(new Date(time).toISOString());
          expect(backwards.toReversed(), `${text} ${timeZone} ${day}`).toEqual(forwards);
        }
  });
});

describe('the times that are due', () => {
  const hourly = scheduleOf('0 * * * *');
  const due = (terms: Partial<MissedTerms>, from: string, now: string) => {
    const { times, skipped } = dueFirings(
      hourly,
      { missed: 'skip', missedMost: 3, missedAfterSecs: 60, ...terms },
      timeAt(from),
      timeAt(now),
    );
    return { times: times.map((time) => new Date(time).toISOString().slice(11, 16)), skipped };
  };

  test('are those after the cursor, up to now and with it', () => {
    expect(due({}, '08:59:59', '08:59:59.999')).toEqual({ times: [], skipped: 0 });
    expect(due({}, '08:59:59', '09:00:00')).toEqual({ times: ['09:00'], skipped: 0 });
    expect(due({}, '09:00:00', '09:00:30')).toEqual({ times: [], skipped: 0 });
    expect(due({}, '08:59:59', '09:00:59')).toEqual({ times: ['09:00'], skipped: 0 });
  });

  test.each([
    ['skip', '13:30:00', [], 5],
    ['last', '13:30:00', ['13:00'], 4],
    ['all', '13:30:00', ['11:00', '12:00', '13:00'], 2],
    ['skip', '13:00:10', ['13:00'], 4],
    ['last', '13:00:10', ['13:00'], 4],
    ['all', '13:00:10', ['10:00', '11:00', '12:00', '13:00'], 1],
    ['skip', '13:01:00', [], 5],
  ] as const)(
    'with missed = "%s" after an absence from 8:30 until %s are %j',
    (missed, now, times, skipped) => {
      expect(due({ missed }, '08:30:00', now)).toEqual({ times, skipped });
    },
  );

  test('are none before a cursor in the future, and no skipped time is counted for ever', () => {
    expect(due({ missed: 'all' }, '13:00:00', '09:00:00')).toEqual({ times: [], skipped: 0 });
    const seconds = scheduleOf('* * * * * *');
    const terms = { missed: 'last', missedMost: 1, missedAfterSecs: 60 } as const;
    expect(dueFirings(seconds, terms, 0, timeAt('09:00:00'))).toMatchObject({ skipped: 100 });
    expect(dueFirings(seconds, terms, 0, timeAt('09:00:00')).times).toHaveLength(60);
  });
});
