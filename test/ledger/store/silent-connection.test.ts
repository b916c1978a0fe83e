import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { findAccount } from '../../../src/accounts/store/credit.ts';
import { isDatabaseLoss, openDatabase, openPool } from '../../../src/ledger/store/database.ts';
import { createDatabase } from '../../support/database.ts';
import { holdDeadlines } from '../../support/deadlines.ts';
import { startSilentProxy } from '../../support/silent-proxy.ts';
import { eventually } from '../../support/wait.ts';

const queryTimeoutMs = 60_000;

/** A pool of one connection that is open already, and falls silent. */
async function silentPool() {
  const proxy = await startSilentProxy(await createDatabase());
  const pool = openPool({ url: proxy.url, maxConnections: 1, queryTimeoutMs });
  onTestFinished(() => pool.end());
  await pool.query('select 1');
  proxy.silence();
  return { proxy, pool };
}

type Scene = Awaited<ReturnType<typeof silentPool>>;

test.each([
  ['a query', ({ pool }: Scene) => pool.query('select 1')],
  ['a built query', ({ pool }: Scene) => findAccount(openDatabase(pool), { accountId: 1 })],
])('%s on a connection that fell silent fails in time, and the next has a new connection', async (_, ask) => {
  const scene = await silentPool();
  const deadlines = holdDeadlines();
  const failing = ask(scene).catch((error: unknown) => error);
  await eventually(() => expect(deadlines.running()).toEqual([queryTimeoutMs]));
  await deadlines.end();
  const failed: unknown = await failing;
  expect(failed).toBeInstanceOf(Error);
  expect(isDatabaseLoss(failed as Error)).toBe(true);
  await ask(scene);
  expect([scene.pool.totalCount, scene.pool.idleCount, scene.pool.waitingCount]).toEqual([1, 1, 0]);
  expect(scene.proxy.connections()).toBe(1);
});

test('a query that the database refuses costs no connection', async () => {
  const { pool, db } = await createDatabase();
  const pid = async () => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  const before = await pid();
  await expect(sql`select 1 / 0`.execute(db)).rejects.toThrow(/division by zero/);
  expect(await pid()).toBe(before);
});
