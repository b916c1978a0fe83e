import type pg from 'pg';
import { isDenied } from './database.ts';

/** What a server says about itself and about the user of a connection. */
export interface DatabaseFacts {
  /** Such as 180004 for 18.4. */
  readonly versionNumber: number;
  readonly version: string;
  readonly maxConnections: number;
  /** It is a standby, which takes no writes. */
  readonly isStandby: boolean;
  /** Settings of the server whose loss of power may lose acknowledged commits, or break the data: those that are off. */
  readonly offSettings: readonly string[];
  /** Whether commits wait for a standby. */
  readonly hasSynchronousStandby: boolean;
  /** How many receive what this server writes. */
  readonly receivers: number;
  readonly user: string;
  /** Whether the user has the rights of the owner of the ledger, or of every user. */
  readonly isOwner: boolean;
}

interface FactRow extends Omit<DatabaseFacts, 'offSettings'> {
  readonly fsync: string;
  readonly pages: string;
}

export async function readDatabaseFacts(pool: pg.Pool): Promise<DatabaseFacts> {
  // raw SQL: functions and tables of PostgreSQL's own
  const { rows } = await pool.query<FactRow>(
    `select current_setting('server_version_num')::int as "versionNumber", current_setting('server_version') as version,
      current_setting('max_connections')::int as "maxConnections", pg_is_in_recovery() as "isStandby",
      current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
      current_setting('synchronous_standby_names') <> '' as "hasSynchronousStandby",
      (select count(*) from pg_stat_replication) as receivers, session_user as user,
      coalesce((select pg_has_role(session_user, nspowner, 'member') from pg_namespace where nspname = 'tollbook'),
        (select rolsuper from pg_roles where rolname = session_user)) as "isOwner"`,
  );
  const [row] = rows;
  if (!row) throw new Error('the database says nothing about itself');
  const { fsync, pages, ...facts } = row;
  const settings = { fsync, full_page_writes: pages };
  const offSettings = Object.entries(settings).flatMap(([name, value]) => (value === 'off' ? name : []));
  return { ...facts, offSettings };
}

/** By how much the ledger's clock is ahead of this machine's, and how much of that the way there and back explains. */
export async function readClockOffset(
  pool: pg.Pool,
): Promise<{ readonly aheadMs: number; readonly uncertainMs: number }> {
  const before = Date.now();
  // raw SQL: the time in milliseconds, by the ledger's clock
  const { rows } = await pool.query<{ ms: number }>(
    'select extract(epoch from tollbook.clock())::float8 * 1000 as ms',
  );
  const uncertainMs = (Date.now() - before) / 2;
  return { aheadMs: (rows[0]?.ms ?? before) - before - uncertainMs, uncertainMs };
}

export interface DataDirectory {
  readonly path: string;
  readonly changedAtSecs: number;
}

/** Where the server has its files; undefined for a user who may not ask, as most may not. */
export async function findDataDirectory(pool: pg.Pool): Promise<DataDirectory | undefined> {
  try {
    // raw SQL: functions of PostgreSQL's own
    const { rows } = await pool.query<DataDirectory>(
      `select current_setting('data_directory') as path,
        extract(epoch from (pg_stat_file('.')).modification)::float8 as "changedAtSecs"`,
    );
    return rows[0];
  } catch (error) {
    if (isDenied(error)) return undefined;
    throw error;
  }
}
