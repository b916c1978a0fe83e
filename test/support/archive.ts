import type pg from 'pg';
import { expect } from 'vitest';
import { withClient } from './database.ts';
import { eventually } from './wait.ts';

/** The rows of a query, over a connection of its own. */
export async function ask<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  return withClient(url, async (client) => (await client.query<Row>(text)).rows);
}

/** That all of the ledger's write-ahead log until now is archived. */
export async function archived(admin: string): Promise<void> {
  const [last] = await ask<{ file: string }>(
    admin,
    'select pg_walfile_name(pg_current_wal_lsn()) as file, pg_switch_wal()',
  );
  await eventually(async () => {
    const [row] = await ask<{ done: boolean }>(
      admin,
      `select last_archived_wal >= '${last?.file}' as done from pg_stat_archiver`,
    );
    expect(row?.done).toBe(true);
  });
}

/** A moment after the last event, with the number of events until then. */
export function idleMoment(admin: string) {
  return eventually(async () => {
    const [row] = await ask<{ at: string; events: number; idle: boolean }>(
      admin,
      `select clock_timestamp()::text as at, count(*)::int as events, max(at) < clock_timestamp() - interval '1 second' as idle
       from tollbook.event`,
    );
    if (!row?.idle) throw new Error('the last event is too new');
    return row;
  });
}
