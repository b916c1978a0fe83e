import type pg from 'pg';
import { readDatabaseUrl } from '../config/database-url.ts';
import { processEnvironment } from '../config/environment.ts';
import { type LedgerDatabase, openDatabase, openPool } from '../store/database.ts';
import { grantedWriterRole } from '../store/writer-role.ts';
import { type Lane, openLane } from '../store/lane.ts';

/** Opens the ledger that DATABASE_URL names, for one command. The message of an error never contains the URL. */
export async function withLedger<T>(
  use: (ledger: { pool: pg.Pool; db: LedgerDatabase; lane: Lane }) => Promise<T>,
): Promise<T> {
  const url = await readDatabaseUrl(processEnvironment());
  const role = await grantedWriterRole(url).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `the database that DATABASE_URL names cannot be used: ${reason}. Nothing was done: check the URL, and that its server runs`,
      { cause },
    );
  });
  const pool = openPool({ url, role, maxConnections: 2 });
  const lane = openLane({ url, role, flushers: 1 });
  try {
    return await use({ pool, db: openDatabase(pool), lane });
  } finally {
    await lane.close();
    await pool.end();
  }
}
