import { expect, onTestFinished, test } from 'vitest';
import type { EventOf } from '../../src/domain/events/event.ts';
import { beginPruneRound, endPruneRound, pruneRows } from '../../src/store/pruning.ts';
import { startCleaner } from '../../src/workers/cleaner.ts';
import { bare, parse } from '../config/support.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { allEvents, expectSoundLedger } from '../support/invariants.ts';
import { eventually } from '../support/wait.ts';

const daySecs = 86_400;

async function cleanerOn(database: TestDatabase) {
  const { retention } = (await parse(bare(''))).config;
  const log = { error: (fields: object) => expect(fields).toBeUndefined() };
  const cleaner = startCleaner({ pool: database.pool, lane: laneOn(database), log }, retention);
  onTestFinished(() => cleaner.stop());
  return cleaner;
}

async function storeResults({ asOwner }: TestDatabase, from: number, to: number): Promise<void> {
  await asOwner((owner) =>
    owner.query(
      `select tollbook.put_result(call_id, 1, gen_random_uuid(), null, 'a') from generate_series($1::int, $2) call_id`,
      [from, to],
    ),
  );
}

async function prunedEvents({ db }: TestDatabase): Promise<EventOf<'data_pruned'>[]> {
  return (await allEvents(db)).filter((event) => event.type === 'data_pruned');
}

test('gateways that prune at once delete each row once, and one event says how many of what went', async () => {
  const database = await createDatabase();
  await storeResults(database, 1, 1_000);
  await storeResults(database, 1_001, 1_001);
  await database.asOwner((owner) =>
    owner.query(`select tollbook.put_body(gen_random_uuid(), null, 'a') from generate_series(1, 3);
      update tollbook.call_result set created_at = now() + interval '2 days' where call_id = 1001`),
  );
  await database.moveClock(31 * daySecs);
  await Promise.all([cleanerOn(database), cleanerOn(database), cleanerOn(database)]);
  const [{ data } = { data: undefined }] = await eventually(async () => {
    const events = await prunedEvents(database);
    expect(events).toHaveLength(1);
    return events;
  });
  expect(data).toEqual({
    pruned: [
      { kind: 'call_bodies', count: 3, before: expect.any(Number) as number },
      { kind: 'call_results', count: 1_000, before: expect.any(Number) as number },
    ],
  });
  const before = data?.pruned[1]?.before ?? 0;
  expect(Math.abs(before - (Date.now() / 1_000 + daySecs))).toBeLessThan(60);
  expect((await database.pool.query('select call_id from tollbook.call_result')).rows).toEqual([
    { call_id: 1_001 },
  ]);
  expect((await database.pool.query('select from tollbook.prune_sum')).rowCount).toBe(0);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('what a gateway deleted before it stopped is recorded by the next round, once', async () => {
  const database = await createDatabase();
  const { pool, moveClock } = database;
  await storeResults(database, 1, 5);
  await moveClock(31 * daySecs);
  expect(await pruneRows(pool, 'call_results', 30 * daySecs, 2)).toBe(2);
  // this round ended, and its event was recorded by one of two gateways that both know of it
  const ended = await endPruneRound(pool);
  expect([...ended.keys()]).toEqual([1]);
  expect(await pruneRows(pool, 'call_results', 30 * daySecs, 2)).toBe(2);
  const lane = laneOn(database);
  const data: EventOf<'data_pruned'>['data'] = { pruned: [{ kind: 'call_results', count: 2, before: 1 }] };
  await lane.append({ stream: 'retention:1', expect: 0, events: [{ type: 'data_pruned', data }] });
  const cleaner = await cleanerOn(database);
  const events = await eventually(async () => {
    const found = await prunedEvents(database);
    expect(found).toHaveLength(2);
    return found;
  });
  await cleaner.stop();
  expect(events.map((event) => event.data.pruned[0]?.count)).toEqual([2, 3]);
});

test('one gateway begins each round, and none while the ledger is halted', async () => {
  const { pool, moveClock, asOwner } = await createDatabase();
  const begun = async () =>
    (await Promise.all([1, 2, 3].map(() => beginPruneRound(pool, 600)))).filter(Boolean).length;
  expect(await begun()).toBe(1);
  expect(await begun()).toBe(0);
  await moveClock(601);
  expect(await begun()).toBe(1);
  await moveClock(-daySecs);
  expect(await begun()).toBe(1);
  await moveClock(daySecs);
  await asOwner((owner) => owner.query(`select tollbook.halt_ledger('a test', null, null)`));
  expect(await begun()).toBe(0);
});
