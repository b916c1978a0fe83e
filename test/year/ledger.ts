import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { sealNext } from '../../src/audit/use-cases/log/seal.ts';
import { type NoteVerifier, noteSigner, verifierOf } from '../../src/base/values/log/checkpoint.ts';
import { signerIn } from '../../src/base/values/log/log-generation.ts';
import { type LedgerDatabase, openDatabase, openPool, writerRole } from '../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../src/ledger/store/lane.ts';
import { readLogGeneration } from '../../src/audit/store/log.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';

/** The signer of the log's first generation. */
export const yearSigner = noteSigner('year.example/log', [Buffer.alloc(32, 21)]);

/** A ledger in its own database, with a clock that stands still until it is set. */
export interface YearLedger {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
  /** Sets `tollbook.clock()`, as the owner of the database. */
  setClock(atMs: number): Promise<void>;
  /** Runs a statement as a superuser. */
  asOwner(statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** The same, past every trigger that refuses a change. */
  asInsider(statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** Signs a tree head over all events, and returns the key that checks it. */
  seal(): Promise<NoteVerifier>;
  /** A copy of it as it is now. */
  copy(): Promise<YearLedger>;
  drop(): Promise<void>;
}

const connections = 6;

/** @param serverUrl of a superuser, with `DATABASE` in the place of a database's name */
export async function createYearLedger(serverUrl: string): Promise<YearLedger> {
  const name = databaseName();
  await onServer(serverUrl, `create database ${name}`);
  await migrate(urlOf(serverUrl, name), { role: writerRole });
  return openYearLedger(serverUrl, name);
}

function openYearLedger(serverUrl: string, name: string): YearLedger {
  const url = urlOf(serverUrl, name);
  let pool = openPool({ url, maxConnections: connections, role: writerRole });
  let lane = openLane({ url, role: writerRole });
  const asOwner = (statement: string, values: readonly unknown[] = []) => runOn(url, statement, values);
  const close = async (): Promise<void> => {
    await lane.close();
    await pool.end();
  };
  return {
    url,
    get pool() {
      return pool;
    },
    get db() {
      return openDatabase(pool);
    },
    get lane() {
      return lane;
    },
    asOwner,
    asInsider: (statement, values = []) =>
      runOn(url, statement, values, 'set session_replication_role = replica'),
    async setClock(atMs) {
      const text = new Date(atMs).toISOString();
      await asOwner(`create or replace function tollbook.clock() returns timestamptz language sql volatile
        as 'select ''${text}''::timestamptz'`);
    },
    async seal() {
      while ((await sealNext(pool, yearSigner, { everyMs: 0, everyEvents: 10_000 })) === 'again');
      const { generation } = await readLogGeneration(pool);
      return verifierOf(signerIn(yearSigner, generation));
    },
    async copy() {
      const other = databaseName();
      await close();
      // the server waits until the connections that were closed are gone
      await onServer(serverUrl, `create database ${other} template ${name} strategy file_copy`);
      pool = openPool({ url, maxConnections: connections, role: writerRole });
      lane = openLane({ url, role: writerRole });
      return openYearLedger(serverUrl, other);
    },
    async drop() {
      await close();
      await onServer(serverUrl, `drop database ${name} with (force)`);
    },
  };
}

function databaseName(): string {
  return `year_${randomBytes(6).toString('hex')}`;
}

function urlOf(serverUrl: string, name: string): string {
  return serverUrl.replace('DATABASE', name);
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  await runOn(urlOf(serverUrl, 'postgres'), statement, []);
}

async function runOn(
  url: string,
  statement: string,
  values: readonly unknown[],
  before?: string,
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    if (before !== undefined) await client.query(before);
    return (await client.query<Record<string, unknown>>(statement, [...values])).rows;
  } finally {
    await client.end();
  }
}
