import type pg from 'pg';
import { openPool, writerRole } from '../../src/ledger/store/database.ts';
import { checkRows } from '../../src/audit/use-cases/verify/rows/check-rows.ts';

/** What the row check of `tollbook verify` says of the database that an owner is connected to. It reads one snapshot. */
export async function rowFaults(owner: pg.Client): Promise<string[]> {
  const { user = '', password, database = '', host, port } = owner;
  const auth = [user, ...(typeof password === 'string' ? [password] : [])].map(encodeURIComponent).join(':');
  const url = `postgresql://${auth}@/${encodeURIComponent(database)}?host=${encodeURIComponent(host)}&port=${port}`;
  const pool = openPool({ url, maxConnections: 1, role: writerRole });
  try {
    return (await checkRows(pool)).map(({ table, words }) => `${table}: ${words}`);
  } finally {
    await pool.end();
  }
}
