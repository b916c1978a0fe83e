import { readdir, readFile } from 'node:fs/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { backOffMs } from '../../base/values/back-off.ts';
import { pause } from '../../base/runtime/pause.ts';
import { openPool, queriesOn } from './database.ts';
import { applyFunctionFiles, changedFunctionFiles, type GrantedRoles, rolesNamed } from './function-files.ts';
import {
  createReaderRole,
  createWriterRole,
  readerRolesOf,
  revokeAll,
  writerRolesOf,
} from './writer-role.ts';

const migrationFolder = new URL('../../../migrations/', import.meta.url);
const grantsName = 'grants.sql';
/** Separate from the others: without the role, its revocations would apply to the owner. */
const readerGrantsName = 'reader-grants.sql';

/**
 * A waiting ALTER TABLE stops every later statement on its table, so a migration waits for a lock only this long, and then
 * tries again: the gateways that run meanwhile are never stopped for longer.
 */
const lockWait = '1s';
const retries = { firstMs: 200, longestMs: 5_000 };
const longestRetryMs = 600_000;

/** The first line of a file whose statements run one by one, each outside a transaction, as CREATE INDEX CONCURRENTLY must. */
const outsideTransaction = /^-- outside a transaction\b/;

export interface MigrateOptions {
  /** Another role for gateways than the database's own. */
  readonly role?: string;
  /** Another role for readers than the database's own. */
  readonly readerRole?: string;
  /** Other files than the repository's. */
  readonly folder?: URL;
  /** Called with a sentence for the operator where something was left out that this user may not do. */
  readonly onNotice?: (text: string) => void;
}

/**
 * Brings a database up to this version: each file in a separate transaction, without a limit of time; then the function
 * files and grants together. Concurrent runs wait for each other, and a run that was interrupted can be repeated. The user must
 * own the database; if it may not create the gateway's role, everything else is done.
 * Returns the names of migrations, then `functions/NAME` for each function file.
 * Throws the first database error; the file that it was in is not applied, those before it are. Throws before any change if a newer
 * version has migrated the database.
 */
export async function migrate(
  url: string,
  { role: givenRole, readerRole: givenReader, folder = migrationFolder, onNotice }: MigrateOptions = {},
): Promise<string[]> {
  return onOneConnection(url, async (db) => {
    await lockMigrations(db);
    // its functions would be replaced by older ones, and those that this version does not know dropped
    const newer = await describeNewer(db, folder);
    if (newer !== undefined) throw new Error(newer);
    const { role, exists, missingSql } = await createWriterRole(db, givenRole);
    const reader = await createReaderRole(db, givenReader);
    await createMigrationTable(db);
    const missing = await missingMigrations(db, folder);
    for (const name of missing)
      await applyMigration(db, name, await readFile(new URL(`${name}.sql`, folder), 'utf8'));
    const roles = { writer: exists ? role : undefined, reader };
    const ran = await retryLocks(() => applyFunctions(db, roles, missing.length > 0));
    if (missingSql !== undefined) onNotice?.(withoutRole(role, exists, missingSql));
    return [...missing, ...ran];
  });
}

/** Tells the administrator's next step, and the effects until then. */
function withoutRole(role: string, exists: boolean, missingSql: string): string {
  const then = exists ? 'restart the gateways' : 'run `tollbook migrate` again and restart the gateways';
  return (
    `This database user may not ${exists ? 'work as' : 'create'} the role ${role}, so gateways work with the rights of their user: ` +
    `the database does not keep them from changing the ledger. Have an administrator run: ${missingSql} Then ${then}.`
  );
}

/** The migrations that this database still lacks, and the function files whose text it does not have. */
export async function pendingMigrations(url: string): Promise<string[]> {
  return onOneConnection(url, async (db) => [
    ...(await missingMigrations(db, migrationFolder)),
    ...(await changedFunctionFiles(db)),
  ]);
}

/** Says that a newer version of this program has migrated the database; undefined if none has. */
export async function describeNewerDatabase(url: string): Promise<string | undefined> {
  return onOneConnection(url, (db) => describeNewer(db, migrationFolder));
}

async function describeNewer(db: Kysely<unknown>, folder: URL): Promise<string | undefined> {
  if (await isMissing(db, 'to_regclass', 'tollbook.migration')) return undefined;
  const last = (await migrationNames(folder)).at(-1) ?? '';
  const { rows } = await sql<{ name: string }>`
    select name from tollbook.migration where name > ${last} order by name`.execute(db);
  if (rows.length === 0) return undefined;
  const names = rows.map(({ name }) => name).join(', ');
  return `The database is newer than this program: it has the migrations ${names}. Use the version that made them, or a newer one.`;
}

/** The migrations of this program that the database lacks; fewer than {@link pendingMigrations} while another version works on it. */
export async function lackedMigrations(pool: pg.Pool): Promise<string[]> {
  const db = queriesOn(pool) as unknown as Kysely<unknown>;
  return missingMigrations(db, migrationFolder);
}

/** Held until the connection ends. Asked for again and again: a statement that waits would hold back vacuum and indexes. */
async function lockMigrations(db: Kysely<unknown>): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_lock(hashtext('tollbook.migrate')) as locked`.execute(db);
    if (rows[0]?.locked) return;
    await pause(retries.firstMs);
  }
}

async function createMigrationTable(db: Kysely<unknown>): Promise<void> {
  if (await isMissing(db, 'to_regnamespace', 'tollbook')) await sql`create schema tollbook`.execute(db);
  await sql`create table if not exists tollbook.migration (
    name text collate "C" primary key, applied_at timestamptz not null)`.execute(db);
}

async function isMissing(db: Kysely<unknown>, lookUp: string, name: string): Promise<boolean> {
  const { rows } = await sql<{
    missing: boolean;
  }>`select ${sql.raw(lookUp)}(${name}) is null as missing`.execute(db);
  return rows[0]?.missing ?? true;
}

async function migrationNames(folder: URL): Promise<string[]> {
  const files = await readdir(folder);
  return files.flatMap((file) => /^(\d+-.*)\.sql$/.exec(file)?.[1] ?? []).toSorted();
}

async function missingMigrations(db: Kysely<unknown>, folder: URL): Promise<string[]> {
  const names = await migrationNames(folder);
  if (await isMissing(db, 'to_regclass', 'tollbook.migration')) return names;
  const { rows } = await sql<{ name: string }>`select name from tollbook.migration`.execute(db);
  const applied = new Set(rows.map(({ name }) => name));
  return names.filter((name) => !applied.has(name));
}

async function applyMigration(db: Kysely<unknown>, name: string, text: string): Promise<void> {
  const record = (of: Kysely<unknown>) =>
    sql`insert into tollbook.migration (name, applied_at) values (${name}, clock_timestamp())`.execute(of);
  if (outsideTransaction.test(text)) {
    // waits for older transactions, and stops no writer meanwhile
    await sql`set lock_timeout = 0`.execute(db);
    for (const statement of text.split(/;[ \t]*$/m))
      if (/^\s*[^-\s]/m.test(statement)) await sql.raw(statement).execute(db);
    await record(db);
    return;
  }
  await retryLocks(() =>
    inTransaction(db, async (trx) => {
      await sql.raw(text).execute(trx);
      await record(trx);
    }),
  );
}

/**
 * The function files that have changed, or all of them if another role gets the rights; then the grants on tables. Without a
 * role its rights go to this user, who has them as the owner.
 */
async function applyFunctions(
  db: Kysely<unknown>,
  roles: GrantedRoles,
  hasNewTables: boolean,
): Promise<string[]> {
  const before = [...(await writerRolesOf(db)), ...(await readerRolesOf(db))];
  const { writer, reader } = roles;
  const wanted = [writer, reader].filter((role) => role !== undefined);
  const isRoleNew = wanted.some((role) => !before.includes(role));
  return inTransaction(db, async (trx) => {
    for (const old of before) if (!wanted.includes(old)) await revokeAll(trx, old);
    const ran = await applyFunctionFiles(trx, roles, isRoleNew);
    if (ran.length > 0 || hasNewTables) {
      for (const name of [grantsName, ...(reader === undefined ? [] : [readerGrantsName])])
        await sql.raw(rolesNamed(await readFile(new URL(name, migrationFolder), 'utf8'), roles)).execute(trx);
    }
    return ran;
  });
}

function inTransaction<T>(db: Kysely<unknown>, use: (trx: Kysely<unknown>) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await sql`select set_config('lock_timeout', ${lockWait}, true)`.execute(trx);
    return use(trx);
  });
}

/** Repeats a step that could not get a lock in time, or met a deadlock: its transaction has changed nothing. */
async function retryLocks<T>(apply: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + longestRetryMs;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await apply();
    } catch (error) {
      const isLocked = error instanceof pg.DatabaseError && /^(?:55P03|40P01)$/.test(error.code ?? '');
      if (!isLocked || performance.now() > endMs) throw error;
    }
    await pause(backOffMs(retries, attempt));
  }
}

async function onOneConnection<T>(url: string, use: (db: Kysely<unknown>) => Promise<T>): Promise<T> {
  // a long migration is not a fault
  const settings = { statement_timeout: '0', idle_in_transaction_session_timeout: '0' };
  const pool = openPool({ url, maxConnections: 1, queryTimeoutMs: 0, settings });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    return await db.connection().execute(use);
  } finally {
    await db.destroy();
  }
}
