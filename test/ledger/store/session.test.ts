import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openPool, writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import {
  openSession,
  type Session,
  SessionError,
  type SessionOptions,
} from '../../../src/ledger/store/session.ts';
import { startBooks } from '../../support/books.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { newStream, refused } from '../../support/events.ts';
import { allEvents } from '../../support/invariants.ts';
import { noPgbouncer, startPgbouncer } from '../../support/pgbouncer.ts';
import { tollbook } from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';

const withOptions = (url: string, ...parameters: readonly string[]): string =>
  `${url}${url.includes('?') ? '&' : '?'}${parameters.join('&')}`;

const wrongOptions = `options=${encodeURIComponent(
  '-c synchronous_commit=off -c statement_timeout=0 -c search_path=public -c timezone=Asia/Tokyo -c datestyle=German -c geqo=off',
)}`;

async function session(options: SessionOptions): Promise<Session> {
  const opened = await openSession(options);
  onTestFinished(() => opened.end());
  return opened;
}

const named = `select current_setting('role') as role, current_setting('synchronous_commit') as commits,
  current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
  current_setting('idle_in_transaction_session_timeout') as idle, current_setting('search_path') as path,
  current_setting('timezone') as zone, current_setting('datestyle') as dates`;

const needed = {
  role: writerRole,
  commits: 'on',
  statement: '30s',
  lock: '5s',
  idle: '10s',
  path: 'pg_catalog, pg_temp',
  zone: 'UTC',
  dates: 'ISO, MDY',
};

/** Of a URL with which no session may be used; the refusal names the variable and says that nothing happened. */
const refusal = (what: RegExp) =>
  expect.objectContaining({
    message: expect.stringMatching(
      new RegExp(
        `^DATABASE_URL leads to a database session that the ledger cannot rely on: .*${what.source}.*Nothing was recorded or charged`,
      ),
    ) as string,
  }) as Error;

test('a session has the settings that the guarantees need, whatever the URL, the user and the database set', async () => {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(`alter database ${owner.database ?? ''} set idle_in_transaction_session_timeout = 0`),
  );
  const url = withOptions(database.url, wrongOptions, 'lock_timeout=1', 'application_name=other');
  const opened = await session({ url, role: writerRole });
  expect((await opened.query(named)).rows).toEqual([needed]);
  // what the program does not rely on stays the operator's
  expect((await opened.query('show geqo')).rows).toEqual([{ geqo: 'off' }]);
  const pool = openPool({ url, role: writerRole, maxConnections: 1 });
  onTestFinished(() => pool.end());
  expect((await pool.query(named)).rows).toEqual([needed]);
});

test('a session whose role or settings cannot be made is refused, and the sentence says which and what to do', async () => {
  const { url } = await createDatabase();
  await expect(openSession({ url, role: 'nobody_s_role' })).rejects.toThrow(
    refusal(/refuses its settings: role "nobody_s_role" does not exist/),
  );
  const replica = withOptions(url, `options=${encodeURIComponent('-c session_replication_role=replica')}`);
  const failed: unknown = await openSession({ url: replica }).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(SessionError);
  expect(failed).toEqual(refusal(/session_replication_role has to be origin, and is replica/));
  await expect(startBooks({ url: replica } as TestDatabase)).rejects.toThrow(/^DATABASE_URL leads to .*\.$/);
});

test('a lane takes no session that cannot be relied on: its append waits, and is recorded once there is one', async () => {
  const database = await createDatabase();
  const [owner, name] = [database.asOwner, (await session({ url: database.url })).database ?? ''];
  await owner((client) => client.query(`alter database ${name} set session_replication_role = replica`));
  const causes: Error[] = [];
  const lane = openLane({ url: database.url, role: writerRole, onError: (error) => causes.push(error) });
  onTestFinished(() => lane.close(1_000));
  const appended = lane.append({ stream: newStream(), events: [refused()] });
  await eventually(() => expect(causes[0]).toBeInstanceOf(SessionError));
  expect(lane.state.brokenSince).toBeDefined();
  expect(await owner((client) => client.query('select from tollbook.event'))).toMatchObject({ rowCount: 0 });
  await owner((client) => client.query(`alter database ${name} reset session_replication_role`));
  expect(await appended).toMatchObject({ outcome: 'ok', seq: 1 });
});

test.skipIf(noPgbouncer)(
  `through a pooler in session mode a session has its settings, also where the pooler ignores those of the start${noPgbouncer}`,
  async () => {
    const database = await createDatabase();
    const ignored = 'options,extra_float_digits,lock_timeout,statement_timeout';
    const pooler = await startPgbouncer({ pool_mode: 'session', ignore_startup_parameters: ignored });
    const url = pooler.urlOf(database.url);
    for (const one of [url, withOptions(url, wrongOptions)])
      expect((await (await session({ url: one, role: writerRole })).query(named)).rows).toEqual([needed]);
    const gateway = await startBooks({ url } as TestDatabase);
    expect(gateway.quiet).toBeUndefined();
    await gateway.stop();
  },
);

test.skipIf(noPgbouncer)(
  `through a pooler in transaction or statement mode nothing starts, sells or records: the refusal names DATABASE_URL${noPgbouncer}`,
  async () => {
    const database = await createDatabase();
    for (const pool_mode of ['transaction', 'statement']) {
      const pooler = await startPgbouncer({ pool_mode, ignore_startup_parameters: 'options' });
      const url = pooler.urlOf(database.url);
      await expect(startBooks({ url } as TestDatabase)).rejects.toThrow(refusal(/as in transaction mode/));
      const command = ['transfers', 'list'];
      expect(await tollbook(command, { DATABASE_URL: url })).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/DATABASE_URL .*pooler.*as in transaction mode/) as string,
      });
      // and no other program of that pooler gets its settings
      const stranger = new pg.Client(url);
      await stranger.connect();
      onTestFinished(() => stranger.end());
      expect((await stranger.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
    }
    expect(await allEvents(database.db)).toEqual([]);
  },
);
