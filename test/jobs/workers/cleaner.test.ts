import { expect, onTestFinished, test } from 'vitest';
import type { EventOf } from '../../../src/ledger/rules/event.ts';
import { findCreditAccount, grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { openUserAccount } from '../../../src/accounts/store/identity.ts';
import { beginPruneRound, endPruneRound, pruneRows } from '../../../src/ledger/store/pruning.ts';
import { startCleaner } from '../../../src/jobs/workers/cleaner.ts';
import { bare, parse } from '../../base/config/support.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';

const daySecs = 86_400;
const idOf = (n: number) => `0198a1b2-0000-7000-8000-00000000000${n}`;

async function cleanerOn(database: TestDatabase) {
  const { retention } = (await parse(bare(''))).config;
  const log = { error: (fields: object) => expect(fields).toBeUndefined() };
  const cleaner = startCleaner({ ...database, lane: laneOn(database), log }, retention);
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

test('gateways that prune simultaneously delete each row once, and one event counts the deleted rows by kind', async () => {
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
  // the sums are forgotten behind their event
  await eventually(async () =>
    expect((await database.pool.query('select from tollbook.prune_sum')).rowCount).toBe(0),
  );
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

test('people who never confirmed their address are erased when that life ends, and no one else is', async () => {
  const database = await createDatabase();
  const ledger = { ...database, lane: laneOn(database) };
  const [idle, confirmed, funded, withSession, withWallet] = [1, 2, 3, 4, 5].map(idOf);
  for (const n of [1, 2, 3, 4, 5])
    await database.pool.query(
      `insert into identity."user" (id, name, email, email_verified, created_at, updated_at)
       values ($1, 'Ada', $2, $3, now(), now())`,
      [idOf(n), `ada${n}@example.org`, idOf(n) === confirmed],
    );
  for (const n of [1, 3]) await openUserAccount(database.pool, idOf(n));
  await grantCredit(ledger, (await findCreditAccount(ledger, `user:${funded}`)) ?? 0, 1n);
  await database.asOwner((owner) =>
    owner.query(`insert into identity.session (user_id, token, expires_at, created_at, updated_at)
        values ('${withSession}', 't', now() + interval '1 year', now(), now());
      insert into identity.wallet values ('0x${'1'.repeat(40)}', 0, '${withWallet}', now())`),
  );
  const users = async () =>
    (await database.pool.query<{ id: string }>('select id from identity."user" order by id')).rows.map(
      ({ id }) => id,
    );
  await database.moveClock(6 * daySecs);
  await (await cleanerOn(database)).stop();
  expect(await users()).toHaveLength(5);
  await database.moveClock(8 * daySecs);
  await cleanerOn(database);
  await eventually(async () => expect(await users()).toEqual([confirmed, funded, withSession, withWallet]));
  await eventually(async () => {
    const erased = (await allEvents(database.db)).filter(({ type }) => type === 'user_erased');
    expect(erased.map(({ data }) => data)).toEqual([{ user_id: idle, operator: 'retention' }]);
  });
});
