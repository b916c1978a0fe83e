import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startEmbeddedPostgres } from '../../../src/devnet/postgres.ts';
import { appendStatement, encodeCommand, isPoison } from '../../../src/ledger/store/append-batch.ts';
import { isDatabaseLoss, openDatabase, openPool, writerRole } from '../../../src/ledger/store/database.ts';
import { reachStandby } from '../../../src/ledger/store/halt.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { migrate } from '../../../src/ledger/store/migrations.ts';
import { openSession } from '../../../src/ledger/store/session.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { newStream, refused } from '../../support/events.ts';
import { temporaryFolder } from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';

/** New connections find a server that is read-only, as a demoted primary is, or one that takes writes again. */
function demote(database: TestDatabase, isDemoted: boolean): Promise<unknown> {
  return database.asOwner(async (owner) => {
    const name = pg.escapeIdentifier(owner.database ?? '');
    await owner.query('set default_transaction_read_only = off');
    await owner.query(`alter database ${name} set default_transaction_read_only = ${isDemoted}`);
  });
}

test('an append that reaches a demoted primary is recorded by the next one, over a new connection', async () => {
  const database = await createDatabase();
  await demote(database, true);
  const codes: unknown[] = [];
  const onError = (error: Error): void => void codes.push('code' in error ? error.code : error.message);
  const lane = openLane({ url: database.url, role: writerRole, onError });
  onTestFinished(() => lane.close(1_000));
  const append = lane.append({ stream: newStream(), events: [refused()] });
  await eventually(() => expect(codes[0]).toBe('25006'));
  expect(lane.state.brokenSince).toBeDefined();
  await demote(database, false);
  expect(await append).toMatchObject({ outcome: 'ok', seq: 1 });
});

test.each([
  ['08006', 'a broken connection'],
  ['25006', 'a demoted primary'],
  ['40001', 'a conflict'],
  ['40P01', 'a deadlock'],
  ['42501', 'a role without its grants'],
  ['42P01', 'a database without the tables'],
  ['53100', 'a full disk'],
  ['53300', 'too many connections'],
  ['55P03', 'a lock time-out'],
  ['57014', 'a statement time-out'],
  ['57P01', 'a shutdown'],
  ['57P02', 'a crash'],
  ['57P03', 'a server that starts'],
  ['58030', 'a disk error'],
  ['XX000', 'a fault of the server'],
])('an append is sent again after SQLSTATE %s: %s', (code) => {
  const error = Object.assign(new pg.DatabaseError('refused', 0, 'error'), { code });
  expect(isPoison(error)).toBe(false);
});

test('a write that a demoted primary refuses is a loss of the database, and its connection is not used again', async () => {
  const database = await createDatabase();
  await demote(database, true);
  const pool = openPool({ url: database.url, maxConnections: 1 });
  onTestFinished(() => pool.end());
  const write = () => sql`create table public.written ()`.execute(openDatabase(pool));
  const failed: unknown = await write().catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: '25006' });
  expect(isDatabaseLoss(failed as Error)).toBe(true);
  await demote(database, false);
  await write();
});

test('a commit waits for the disk and the standby, whatever the default of the database is', async () => {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(`alter database ${pg.escapeIdentifier(owner.database ?? '')} set synchronous_commit = off`),
  );
  const client = await openSession({ url: database.url });
  onTestFinished(() => client.end());
  expect((await client.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]);
});

test('an answer that is repeated waits for the standby as the first one did', async () => {
  const server = await startEmbeddedPostgres({ dir: path.join(temporaryFolder(), 'pg'), durable: false });
  onTestFinished(() => server.stop());
  await migrate(server.url());
  const admin = await connected(server.url());
  const standbys = async (names: string): Promise<void> => {
    await admin.query(`alter system set synchronous_standby_names = '${names}'`);
    await admin.query('select pg_reload_conf()');
  };
  const statement = appendStatement(1, randomUUID(), 1, 0, [
    encodeCommand({ stream: newStream(), events: [refused()] }),
  ]);
  /** Sends it over its own connection, and resolves once its commit waits for the standby. */
  const sent = async () => {
    const client = await connected(server.url());
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const answered = client.query(statement).then(
      () => 'answered',
      () => 'not answered',
    );
    await eventually(async () => {
      const waiting = `select from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`;
      expect((await admin.query(waiting, [rows[0]?.pid])).rowCount).toBe(1);
    });
    return { pid: rows[0]?.pid, answered };
  };

  await standbys('absent');
  const first = await sent();
  // the commit is then visible, though no standby has it
  await admin.query('select pg_terminate_backend($1)', [first.pid]);
  expect(await first.answered).toBe('not answered');
  expect((await admin.query('select from tollbook.event')).rowCount).toBe(1);
  const again = await sent();
  await standbys('');
  expect(await again.answered).toBe('answered');
  // what this connection reads counts only once the standby has it
  await standbys('absent');
  const pool = openPool({ url: server.url(), maxConnections: 1 });
  onTestFinished(() => pool.end());
  let isReached = false;
  const reached = reachStandby(pool).then(() => (isReached = true));
  // and so does an answer that would stop the gateway: a primary that was cut off lacks what the new one has acknowledged
  const client = await connected(server.url());
  let isHalted = false;
  const halted = client.query(appendStatement(1, randomUUID(), 8, 7, [])).then(({ rows }) => {
    isHalted = true;
    return rows as unknown;
  });
  await eventually(async () => {
    const waiting = `select from pg_stat_activity where wait_event = 'SyncRep'`;
    expect((await admin.query(waiting)).rowCount).toBe(1);
  });
  expect([isReached, isHalted]).toEqual([false, false]);
  await standbys('');
  await reached;
  expect(await halted).toEqual([{ answer: { halt: { seq: 1, reason: null } } }]);
});

async function connected(url: string): Promise<pg.Client> {
  const client = await openSession({ url });
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}
