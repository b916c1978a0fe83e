import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/devnet/postgres.ts';
import { openPool } from '../src/ledger/store/database.ts';
import { migrate } from '../src/ledger/store/migrations.ts';

/** A durable PostgreSQL and one migrated database in it, which an earlier run may have made. */
export interface Ledger {
  readonly postmasterPid: number;
  readonly url: string;
  readonly pool: pg.Pool;
  /** Another database of the same server, migrated as well. It ends before this one. */
  beside(name: string): Promise<Ledger>;
  stop(): Promise<void>;
}

export async function startLedger(dir: string, settings: Readonly<Record<string, string>>): Promise<Ledger> {
  const postgres = await startEmbeddedPostgres({ dir, durable: true, settings });
  try {
    return await prepare(postgres, 'bench', () => postgres.stop());
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

async function prepare(
  postgres: EmbeddedPostgres,
  name: string,
  stopServer: () => Promise<void>,
): Promise<Ledger> {
  const admin = openPool({ url: postgres.url(), maxConnections: 1 });
  const { rowCount: isThere } = await admin.query('select from pg_database where datname = $1', [name]);
  if (!isThere) await admin.query(`create database ${name}`);
  await admin.end();
  const url = postgres.url(name);
  await migrate(url);
  const pool = openPool({ url, maxConnections: 2 });
  return {
    postmasterPid: postgres.pid,
    url,
    pool,
    beside: (other) => prepare(postgres, other, async () => {}),
    async stop() {
      await pool.end();
      await stopServer();
    },
  };
}

/** The number of events of a type. Throws when `seq` has a gap or the counters differ from the events. */
export async function countEvents({ pool }: Ledger, type: string): Promise<number> {
  const { rows } = await pool.query<
    Record<'events' | 'first' | 'last' | 'head' | 'ofType' | 'counted', number>
  >(
    `
    select count(*) as events, coalesce(min(seq), 1) as first, coalesce(max(seq), 0) as last,
      (select seq from tollbook.lane) as head,
      count(*) filter (where type = $1) as "ofType",
      coalesce((select sum(count)::bigint from tollbook.lane_counter where type = $1), 0) as counted
    from tollbook.event`,
    [type],
  );
  const row = rows[0];
  if (!row) throw new Error('no answer');
  const isWhole = row.first === 1 && row.events === row.last && row.last === row.head;
  if (!isWhole || row.ofType !== row.counted) throw new Error(`the ledger is broken: ${JSON.stringify(row)}`);
  return row.ofType;
}

/** The number of batches that the lane has appended so far. */
export async function countBatches({ pool }: Ledger): Promise<number> {
  const { rows } = await pool.query<{ batches: number }>(
    'select coalesce(sum(last), 0)::bigint as batches from (select max(batch_no) as last from tollbook.lane_batch group by sender_hash) sender',
  );
  return rows[0]?.batches ?? 0;
}

const shownSettings = [
  'server_version',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_sync_method',
  'shared_buffers',
  'max_wal_size',
];

export async function readSettings({ pool }: Ledger): Promise<string> {
  const { rows } = await pool.query<{ name: string; setting: string }>(
    'select name, current_setting(name) as setting from pg_settings where name = any ($1) order by array_position($1, name)',
    [shownSettings],
  );
  return rows.map(({ name, setting }) => `${name} ${setting}`).join(', ');
}

/** The median time that this disk takes to make 8 KiB durable. */
export function measureSyncMs(dir: string): number {
  const file = path.join(dir, 'sync-probe');
  const descriptor = openSync(file, 'w');
  const page = Buffer.alloc(8_192);
  const times = Array.from({ length: 51 }, (_, i) => {
    const startedAt = performance.now();
    writeSync(descriptor, page, 0, page.length, i * page.length);
    fdatasyncSync(descriptor);
    return performance.now() - startedAt;
  });
  closeSync(descriptor);
  rmSync(file);
  return times.toSorted((a, b) => a - b)[25] ?? 0;
}
