import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { checkApiKey } from '../../../src/accounts/store/credit.ts';
import { sendHeartbeat } from '../../../src/ledger/store/processes.ts';
import { pruneRows, pruneShortLived } from '../../../src/ledger/store/pruning.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { admission, codeOf, laneOn, databaseWithLane } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const daySecs = 86_400;
const many = 1_000;
const noKey = '00'.repeat(32);

async function admit(lane: Lane, subject: string): Promise<string> {
  return codeOf(await lane.appendCredit(admission({ subject, perMinute: 1 })));
}

function pruneWindows({ pool }: TestDatabase, max: number): Promise<number> {
  return pruneRows(pool, 'rate_limits', 2 * daySecs, max);
}

async function subjects({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ subject: string }>(
    'select subject from tollbook.rate_window order by 1',
  );
  return rows.map(({ subject }) => subject);
}

test('only rate limits that were not used for two days are deleted', async () => {
  const { database, lane } = await databaseWithLane();
  for (const subject of ['ip:idle', 'ip:busy']) await admit(lane, subject);
  await checkApiKey(database.pool, 'auth:idle', 20, noKey);
  await checkApiKey(database.pool, 'auth:busy', 20, noKey);
  await database.moveClock(1.9 * daySecs);
  expect(await pruneWindows(database, many)).toBe(0);
  await admit(lane, 'ip:busy');
  await checkApiKey(database.pool, 'auth:busy', 20, noKey);
  await database.moveClock(3 * daySecs);
  expect(await pruneWindows(database, many)).toBe(2);
  expect(await subjects(database)).toEqual(['auth:busy', 'ip:busy']);
  expect(await pruneWindows(database, many)).toBe(0);
});

test('only processes that ended more than a day ago are deleted', async () => {
  const { pool, moveClock } = await createDatabase();
  const [ended, living] = [randomUUID(), randomUUID()];
  for (const processId of [ended, living]) await sendHeartbeat(pool, processId, 15);
  await moveClock(2 * daySecs);
  await sendHeartbeat(pool, living, 15);
  expect(await pruneShortLived(pool, many)).toBe(1);
  expect((await pool.query('select process_id from tollbook.process')).rows).toEqual([
    { process_id: living },
  ]);
});

test('pruning deletes at most the given number of rows, and skips locked ones', async () => {
  const { database, lane } = await databaseWithLane();
  await Promise.all(Array.from({ length: 25 }, (_, at) => admit(lane, `ip:${at}`)));
  await database.moveClock(4 * daySecs);
  await database.asOwner(async (owner) => {
    await owner.query(`begin; select from tollbook.rate_window where subject = 'ip:7' for update`);
    const swept = [];
    for (let at = 0; at < 4; at++) swept.push(await pruneWindows(database, 10));
    expect(swept).toEqual([10, 10, 4, 0]);
  });
  expect(await subjects(database)).toEqual(['ip:7']);
});

test('a rate limit stays exact while it is being pruned', async () => {
  const database = await createDatabase();
  const lanes = [laneOn(database), laneOn(database)];
  const all = Array.from({ length: 200 }, (_, at) => `ip:${at}`);
  await Promise.all(all.map((subject) => admit(lanes[0]!, subject)));
  await database.moveClock(4 * daySecs);
  const sweeping = Promise.all(Array.from({ length: 100 }, () => pruneWindows(database, 3)));
  const twice = await Promise.all(
    all.map((subject) => Promise.all(lanes.map((lane) => admit(lane, subject)))),
  );
  await sweeping;
  for (const codes of twice) expect(codes.toSorted()).toEqual(['ok', 'rate_limit_exceeded']);
});
