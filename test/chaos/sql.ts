import pg from 'pg';
import { type LedgerDatabase, openDatabase, openPool } from '../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../src/ledger/store/lane.ts';
import { until } from './until.ts';

/** Uses one connection as the database's owner. Rejects while the database is away. */
export async function withOwner<T>(
  url: string,
  use: (owner: pg.Client) => Promise<T>,
  options: pg.ClientConfig = {},
): Promise<T> {
  const owner = new pg.Client({ connectionString: url, ...options });
  owner.on('error', () => {});
  try {
    await owner.connect();
    return await use(owner);
  } finally {
    await owner.end().catch(() => {});
  }
}

/** Runs a statement over a connection of its own; repeats it for this long while the database cannot be reached. */
export async function ask<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  withinMs = 0,
  query_timeout = 10_000,
): Promise<Row[]> {
  let rows: Row[] = [];
  let reason: unknown;
  const isAnswered = await until(withinMs, async () => {
    try {
      const limits = { connectionTimeoutMillis: 2_000, query_timeout };
      rows = await withOwner(url, async (owner) => (await owner.query<Row>(text)).rows, limits);
      return true;
    } catch (error) {
      reason = error;
      return false;
    }
  });
  if (isAnswered === undefined) throw reason;
  return rows;
}

/** Asks until the query's `holds` is true. Undefined where it is not in time. */
export function untilTrue(url: string, query: string, withinMs: number): Promise<number | undefined> {
  return withOwner(url, (owner) =>
    until(withinMs, async () => {
      const { rows } = await owner.query<{ holds: boolean }>(query);
      const [row] = rows;
      if (typeof row?.holds !== 'boolean') throw new Error(`this tells not what holds: ${query}`);
      return row.holds;
    }),
  );
}

/** What the use cases of the program need of a ledger. */
export interface OpenLedger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
  readonly db: LedgerDatabase;
}

/** Opens the ledger in this process, as a command does. */
export async function withLedger<T>(
  url: string,
  use: (ledger: OpenLedger) => Promise<T>,
  maxConnections = 2,
): Promise<T> {
  const pool = openPool({ url, maxConnections });
  // it is ended with the sessions of a server that ends
  pool.on('error', () => {});
  const lane = openLane({ url });
  try {
    return await use({ pool, lane, db: openDatabase(pool) });
  } finally {
    await lane.close();
    await pool.end();
  }
}
