import { expect, test } from 'vitest';
import { readSchedule } from '../../../../src/base/values/triggers/cron-schedule.ts';
import type { CronTerms } from '../../../../src/base/values/triggers/trigger-terms.ts';
import { readTriggerProgress } from '../../../../src/calls/store/trigger-cursors.ts';
import { createFiringCounts, type FiringAnswer } from '../../../../src/jobs/use-cases/triggers/fire.ts';
import { fireSchedule } from '../../../../src/jobs/use-cases/triggers/fire-schedule.ts';
import { triggerLags } from '../../../../src/jobs/use-cases/triggers/progress.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { logLines } from '../../../support/log-lines.ts';

const hourMs = 3_600_000;

function terms(text: string, change: Partial<CronTerms> = {}): CronTerms {
  const answer = readSchedule(text, change.timeZone ?? 'UTC');
  if (answer.kind !== 'schedule') throw new Error(answer.text);
  const { schedule } = answer;
  return { text, timeZone: 'UTC', schedule, missed: 'skip', missedMost: 3, missedAfterSecs: 60, ...change };
}

/** A fleet on one ledger, whose clock the test sets. */
async function fleet() {
  const database = await createDatabase();
  const fired: string[] = [];
  const { lines, logger } = logLines();
  const counts = createFiringCounts();
  let answer: FiringAnswer = 'recorded';
  let during: (() => Promise<unknown>) | undefined;
  return {
    database,
    fired,
    lines,
    counts,
    answer: (next: FiringAnswer) => void (answer = next),
    /** Happens while the next firing is recorded. */
    during: (next: typeof during) => void (during = next),
    setClock: (time: string) => setClock(database, time),
    fire: (of: CronTerms) =>
      fireSchedule(
        { pool: database.pool, log: logger, counts },
        { name: 'nightly', terms: of },
        async ({ id, body }) => {
          expect(JSON.parse(body)).toEqual({ trigger: 'nightly', scheduled_at: id });
          const meanwhile = during;
          during = undefined;
          await meanwhile?.();
          const isKnown = fired.includes(id);
          if (!isKnown && answer === 'recorded') fired.push(id);
          return isKnown ? 'known' : answer;
        },
      ),
    lag: async (of: CronTerms) => {
      const triggers = { cron: [{ name: 'nightly', terms: of }], chain: [] };
      return triggerLags(triggers, await readTriggerProgress(database.pool))[0];
    },
  };
}

/** Stops the ledger's clock at a time. */
function setClock(database: TestDatabase, time: string): Promise<unknown> {
  return database.asOwner((owner) =>
    owner.query(`create or replace function tollbook.clock() returns timestamptz language sql volatile
      as $$ select timestamptz '${time}' $$`),
  );
}

test('a trigger fires at no time before it was first seen, then at each time once, and says when the next one is', async () => {
  const { fired, fire, setClock: at } = await fleet();
  const hourly = terms('0 * * * *');
  await at('2026-11-23 09:00:00Z');
  expect(await fire(hourly)).toBe(hourMs);
  expect(fired).toEqual([]);
  await at('2026-11-23 09:59:59.999Z');
  expect(await fire(hourly)).toBe(1);
  await at('2026-11-23 10:00:00.0004Z');
  expect(await fire(hourly)).toBe(hourMs);
  expect(await fire(hourly)).toBe(hourMs);
  expect(fired).toEqual(['2026-11-23T10:00:00Z']);
});

test('a clock that is set forward and back fires no time twice, and stops no schedule until it comes there again', async () => {
  const { fired, fire, setClock: at } = await fleet();
  const hourly = terms('0 * * * *', { missed: 'last' });
  await at('2026-11-23 09:30:00Z');
  await fire(hourly);
  await at('2027-11-23 09:30:00Z');
  await fire(hourly);
  expect(fired).toEqual(['2027-11-23T09:00:00Z']);
  await at('2026-11-23 09:31:00Z');
  await fire(hourly);
  await at('2026-11-23 10:00:01Z');
  await fire(hourly);
  // a small step back, before a time that has fired
  await at('2026-11-23 09:59:58Z');
  await fire(hourly);
  await at('2026-11-23 10:00:01Z');
  await fire(hourly);
  expect(fired).toEqual(['2027-11-23T09:00:00Z', '2026-11-23T10:00:00Z']);
});

test('a clock that goes back while a process fires leaves out no time', async () => {
  const { fired, fire, during, setClock: at } = await fleet();
  const hourly = terms('0 * * * *');
  await at('2026-11-23 09:30:00Z');
  await fire(hourly);
  await at('2027-11-23 10:00:00Z');
  during(async () => {
    await at('2026-11-23 09:59:58Z');
    // another process
    await fire(hourly);
  });
  await fire(hourly);
  await at('2026-11-23 10:00:01Z');
  await fire(hourly);
  expect(fired).toEqual(['2027-11-23T10:00:00Z', '2026-11-23T10:00:00Z']);
});

test('missed times are fired as the trigger says, and those that are not fired are counted and logged', async () => {
  for (const [missed, expected] of [
    ['skip', []],
    ['last', ['14']],
    ['all', ['12', '13', '14']],
  ] as const) {
    const { fired, lines, counts, fire, setClock: at } = await fleet();
    const hourly = terms('0 * * * *', { missed });
    await at('2026-11-23 09:30:00Z');
    await fire(hourly);
    await at('2026-11-23 14:30:00Z');
    await fire(hourly);
    expect(fired.map((time) => time.slice(11, 13))).toEqual(expected);
    const skipped = 5 - expected.length;
    expect(lines).toMatchObject([{ level: 40, trigger: 'nightly', times: skipped, missed }]);
    expect(counts.all()).toContainEqual({ trigger: 'nightly', outcome: 'skipped', count: skipped });
  }
});

test('times that do not fire are logged once, also if the ledger takes only some of the others', async () => {
  const { fired, fire, lines, answer, counts, during, setClock: at } = await fleet();
  const hourly = terms('0 * * * *', { missed: 'all' });
  await at('2026-11-23 09:30:00Z');
  await fire(hourly);
  await at('2026-11-23 14:30:00Z');
  answer('full');
  await fire(hourly);
  answer('recorded');
  // the first of three is recorded, then the ledger takes no further one
  during(async () => {
    during(async () => answer('full'));
  });
  await fire(hourly);
  expect(fired.map((time) => time.slice(11, 13))).toEqual(['12']);
  answer('recorded');
  await fire(hourly);
  expect(fired.map((time) => time.slice(11, 13))).toEqual(['12', '13', '14']);
  expect(lines).toMatchObject([{ trigger: 'nightly', times: 2, missed: 'all' }]);
  expect(counts.all()).toContainEqual({ trigger: 'nightly', outcome: 'skipped', count: 2 });
});

test('a look takes at most a hundred times that are on time, so that it blocks nothing else, and the next ones take the rest', async () => {
  const { fired, fire, lines, setClock: at } = await fleet();
  const seconds = terms('* * * * * *', { missedAfterSecs: 86_400 });
  await at('2026-11-23 09:00:00Z');
  await fire(seconds);
  await at('2026-11-23 09:04:10Z');
  expect([await fire(seconds), fired.length]).toEqual([0, 100]);
  expect([await fire(seconds), fired.length]).toEqual([0, 200]);
  expect([await fire(seconds), fired.length]).toEqual([1_000, 250]);
  const first = Date.parse('2026-11-23T09:00:01Z');
  expect(fired.map((time) => Date.parse(time))).toEqual(fired.map((_, nth) => first + nth * 1_000));
  expect(lines).toEqual([]);
});

test('a schedule that is changed begins at that moment, and so does the former one when it comes back', async () => {
  const { fired, fire, setClock: at } = await fleet();
  const [hourly, halves] = [terms('0 * * * *', { missed: 'all' }), terms('30 * * * *', { missed: 'all' })];
  await at('2026-11-23 09:10:00Z');
  await fire(hourly);
  await at('2026-11-23 09:40:00Z');
  await fire(halves);
  expect(fired).toEqual([]);
  await at('2026-11-23 12:40:00Z');
  await fire(halves);
  expect(fired).toEqual(['10', '11', '12'].map((hour) => `2026-11-23T${hour}:30:00Z`));
  await at('2026-11-23 12:50:00Z');
  await fire(hourly);
  await at('2026-11-23 13:00:00Z');
  await fire(hourly);
  expect(fired.slice(3)).toEqual(['2026-11-23T13:00:00Z']);
});

test('while two configurations are in force simultaneously, as in a roll-out, a time of both fires once and none is left out', async () => {
  const { fired, fire, setClock: at } = await fleet();
  const [old, next] = [terms('0,20 * * * *'), terms('20,40 * * * *')];
  await at('2026-11-23 09:50:00Z');
  await fire(old);
  await fire(next);
  for (let minute = 0; minute < 60; minute += 1) {
    await at(`2026-11-23 10:${String(minute).padStart(2, '0')}:05Z`);
    await fire(old);
    await fire(next);
  }
  expect(fired.map((time) => time.slice(14, 16))).toEqual(['00', '20', '40']);
});

test('a ledger that takes no further call delays a time, and the operator is alerted where it stays so', async () => {
  const { fired, fire, answer, lag, setClock: at } = await fleet();
  const hourly = terms('0 * * * *', { missed: 'all' });
  await at('2026-11-23 09:59:00Z');
  await fire(hourly);
  answer('full');
  await at('2026-11-23 10:00:00Z');
  expect(await fire(hourly)).toBe(1_000);
  expect(await lag(hourly)).toMatchObject({ lagSecs: 0, isBehind: false });
  await at('2026-11-23 10:03:00Z');
  expect(await lag(hourly)).toMatchObject({ lagSecs: 180, isBehind: true });
  answer('recorded');
  await fire(hourly);
  expect(fired).toEqual(['2026-11-23T10:00:00Z']);
  expect(await lag(hourly)).toMatchObject({ lagSecs: 0, isBehind: false });
});
