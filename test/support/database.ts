import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { openDatabase, openPool, type LedgerDatabase, writerRole } from '../../src/ledger/store/database.ts';
import { metered } from './meter.ts';
import { templateDatabase } from './postgres-server.ts';
import { whenOver } from './shared.ts';

export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  /** Connects as the database's owner, for changes that the gateway's role may not make. */
  asOwner<T>(use: (client: pg.Client) => Promise<T>): Promise<T>;
  /** Moves the ledger's clock (`tollbook.clock()`). */
  moveClock(seconds: number): Promise<void>;
  /** Ends every connection and refuses new ones until the returned function is called. */
  away(isAway: boolean): Promise<void>;
  drop(): Promise<void>;
}

/**
 * A start opens as many as it may, and PostgreSQL spends more on a session's process than on its queries: with 5 instead of 20, it spent a
 * fifth less. What needs more at once than there are waits here, as it would with four times the load elsewhere.
 */
export const gatewayConnections = 5;

/** A fresh, migrated database, a copy of the template. Dropped when the test ends, with a check that no connection leaks. */
export async function createDatabase(): Promise<TestDatabase> {
  const database = await metered('copying databases', makeDatabase);
  whenOver(() => database.drop());
  return database;
}

async function makeDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const serverUrl = inject('serverUrl');
  await withClient(serverUrl.replace('DATABASE', 'postgres'), (admin) =>
    admin.query(`create database ${name} template ${templateDatabase} strategy file_copy`),
  );
  const url = serverUrl.replace('DATABASE', name);
  const pool = openPool({ url, maxConnections: 5, role: writerRole });
  const asOwner = <T>(use: (client: pg.Client) => Promise<T>) => withClient(url, use);
  return {
    url,
    pool,
    db: openDatabase(pool),
    asOwner,
    async moveClock(seconds) {
      await asOwner((owner) =>
        owner.query(
          `create or replace function tollbook.clock() returns timestamptz language sql volatile
           as $$ select clock_timestamp() + interval '${seconds} seconds' $$`,
        ),
      );
    },
    away: (isAway) =>
      withClient(serverUrl.replace('DATABASE', 'postgres'), async (admin) => {
        await admin.query(`alter database ${name} with allow_connections ${!isAway}`);
        await admin.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and $2',
          [name, isAway],
        );
      }),
    async drop() {
      await pool.end();
      await withClient(serverUrl.replace('DATABASE', 'postgres'), (admin) =>
        admin.query(`drop database if exists ${name} with (force)`),
      );
    },
  };
}

/** Uses its own connection. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
