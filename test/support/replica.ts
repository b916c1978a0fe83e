import { execFileSync } from 'node:child_process';
import { chownSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { openDatabase, openPool, readerRole, writerRole } from '../../src/ledger/store/database.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { type TestDatabase, withClient } from './database.ts';
import { temporaryFolder } from './program.ts';
import { whenOver } from './shared.ts';

/** A PostgreSQL of the test's own, which may have standbys. */
export interface TestServer {
  readonly url: string;
  /** One statement as its superuser. */
  ask<R extends pg.QueryResultRow>(statement: string): Promise<R[]>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

interface Replicated {
  readonly primary: TestServer;
  readonly replicas: readonly TestServer[];
  /** Of the primary, as a gateway uses it. */
  readonly database: TestDatabase;
}

/** A primary with a ledger, and standbys that stream from it. Settings of a standby, such as a delay, are made with `alter system`. */
export async function startReplicated(standbys = 1): Promise<Replicated> {
  const primary = await startServer();
  await migrate(primary.url, { role: writerRole, readerRole });
  const replicas: TestServer[] = [];
  for (let count = 0; count < standbys; count++) replicas.push(await startStandby(primary));
  return { primary, replicas, database: databaseOf(primary) };
}

async function startStandby(primary: TestServer): Promise<TestServer> {
  const [{ data_directory: from = '' } = {}] =
    await primary.ask<Record<string, string>>('show data_directory');
  const standby = await startServer();
  const [{ data_directory: to = '' } = {}] = await standby.ask<Record<string, string>>('show data_directory');
  await standby.stop();
  await primary.stop();
  rmSync(to, { recursive: true });
  execFileSync('cp', ['-a', from, to]);
  await primary.start();
  const { searchParams } = new URL(primary.url.replace('@/', '@localhost/'));
  const own = (name: string, text: string): void => {
    const file = path.join(to, name);
    writeFileSync(file, text);
    const account = postgresAccount();
    if (account) chownSync(file, account.uid, account.gid);
  };
  own('standby.signal', '');
  const streaming = `primary_conninfo = 'host=${searchParams.get('host')} user=postgres'\n`;
  own('postgresql.auto.conf', `wal_retrieve_retry_interval = '100ms'\n${streaming}`);
  await standby.start();
  return standby;
}

async function startServer(): Promise<TestServer> {
  const dir = path.join(temporaryFolder(), 'pg');
  let server: EmbeddedPostgres = await startEmbeddedPostgres({ dir, durable: false });
  whenOver(() => server.stop());
  return {
    url: server.url(),
    ask: (statement) =>
      withClient(server.url(), async (client) => {
        const { rows } = await client.query(statement);
        return rows;
      }),
    stop: () => server.stop(),
    async start() {
      server = await startEmbeddedPostgres({ dir, durable: false });
    },
  };
}

function absent(): never {
  throw new Error('not for a database of this server');
}

function databaseOf({ url }: TestServer): TestDatabase {
  const pool = openPool({ url, maxConnections: 5 });
  whenOver(() => pool.end());
  return {
    url,
    pool,
    db: openDatabase(pool),
    asOwner: (use) => withClient(url, use),
    async moveClock(seconds) {
      await withClient(url, (owner) =>
        owner.query(
          `create or replace function tollbook.clock() returns timestamptz language sql volatile
           as $$ select clock_timestamp() + interval '${seconds} seconds' $$`,
        ),
      );
    },
    away: absent,
    drop: absent,
  };
}
