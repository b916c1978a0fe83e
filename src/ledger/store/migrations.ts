import { readdir, readFile } from 'node:fs/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { backOffMs } from '../../base/values/back-off.ts';
import { pause } from '../../base/runtime/pause.ts';
import { openPool, queriesOn } from './database.ts';
import { applyFunctionFiles, changedFunctionFiles, dropViews, functionGrants } from './function-files.ts';
import { describeChanges, ownSchemas, readSchemaObjects } from './schema-objects.ts';
import {
  createRoles,
  findRoles,
  grantedRoles,
  type GrantedRoles,
  revokeAll,
  type RoleOptions,
  rolesNamed,
} from './writer-role.ts';

const migrationFolder = new URL('../../../migrations/', import.meta.url);
const grantsName = 'grants.sql';
/** Separate from the others: without the role, its revocations would apply to the owner. */
const readerGrantsName = 'reader-grants.sql';

/**
 * A waiting ALTER TABLE stops every later statement on its table, so the transaction waits for a lock only this long, and is tried again.
 * It keeps the locks that it has got to its end: as long as its statements take.
 */
const lockWait = '1s';
const retries = { firstMs: 200, longestMs: 5_000 };
const longestRetryMs = 600_000;

/**
 * The first line of a file whose statements run one by one, each outside a transaction, as CREATE INDEX CONCURRENTLY must. It runs after
 * all others, and a gateway starts without it.
 */
const outsideTransaction = /^-- outside a transaction\b/;

export interface MigrateOptions extends RoleOptions {
  /** Other files than the repository's: numbered files, grants and `functions/`. */
  readonly folder?: URL;
}

export interface Migrated {
  /** Names of migrations, then `functions/NAME` for each function file, then `grants` if only the roles have changed. */
  readonly ran: readonly string[];
  /** A sentence for the operator about what was left out, since this user may not do it. */
  readonly notice: string | undefined;
}

/**
 * Brings a database up to this version: missing files, function files and grants in one transaction without a limit of time, so that after
 * a fault or a crash the database is as before and the version before still starts. Then the files that run outside a transaction.
 * Concurrent runs wait for each other, and a run that was interrupted can be repeated. The user must own the database; if it may not create
 * the gateway's role, everything else is done.
 * Throws the first database error, and before any change if a version that this one does not know has migrated the database.
 */
export async function migrate(
  url: string,
  { folder = migrationFolder, ...roles }: MigrateOptions = {},
): Promise<Migrated> {
  return onOneConnection(url, async (db) => {
    await lockMigrations(db);
    await refuseNewer(db, folder);
    const notice = await createRoles(db, roles);
    const ran = await retryLocks(async () =>
      inTransaction(db, async (trx) => applyAll(trx, folder, await findRoles(trx, roles))),
    );
    const late = await missingMigrations(db, folder);
    for (const file of late) await applyOutside(db, file);
    return { ran: [...ran, ...late.map(({ name }) => name)], notice };
  });
}

export interface Rehearsal {
  /** What {@link migrate} would run, without the files outside a transaction. */
  readonly ran: readonly string[];
  /** Files that run outside a transaction: they were not tried. */
  readonly notTried: readonly string[];
  /** A line for each table, column, constraint, index, trigger, function and view that would be created, replaced or dropped. */
  readonly changes: readonly string[];
  /** From the first statement on: while {@link migrate} holds its locks for so long, appends may wait. */
  readonly ms: number;
}

/**
 * Does what {@link migrate} does in its transaction, and rolls it back. Creates no roles. Appends may wait meanwhile, as they would for
 * {@link migrate}. Throws what {@link migrate} would throw.
 */
export async function rehearseMigration(
  url: string,
  { folder = migrationFolder, ...roles }: MigrateOptions = {},
): Promise<Rehearsal> {
  return onOneConnection(url, async (db) => {
    await lockMigrations(db);
    await refuseNewer(db, folder);
    return retryLocks(() =>
      inTransaction(
        db,
        async (trx) => {
          const before = await readSchemaObjects(trx);
          const startMs = performance.now();
          const ran = await applyAll(trx, folder, await findRoles(trx, roles));
          const ms = performance.now() - startMs;
          const notTried = (await missingMigrations(trx, folder)).map(({ name }) => name);
          return { ran, notTried, changes: describeChanges(before, await readSchemaObjects(trx)), ms };
        },
        'rollback',
      ),
    );
  });
}

/** The migrations that this database still lacks and a gateway needs, and the function files whose text it does not have. */
export async function pendingMigrations(url: string): Promise<string[]> {
  return onOneConnection(url, findPending);
}

async function findPending(db: Kysely<unknown>): Promise<string[]> {
  return [
    ...(await neededMigrations(db, migrationFolder)).map(({ name }) => name),
    ...(await changedFunctionFiles(db, migrationFolder)),
  ];
}

/** What {@link describeNewerDatabase} and {@link pendingMigrations} say, over connections with the time limits of a pool. */
export async function readMigrationState(
  pool: pg.Pool,
): Promise<{ readonly newer: string | undefined; readonly pending: readonly string[] }> {
  const db = queriesOn(pool) as unknown as Kysely<unknown>;
  return { newer: await describeNewer(db, migrationFolder), pending: await findPending(db) };
}

/** Says that a newer version of this program has migrated the database; undefined if none has. */
export async function describeNewerDatabase(url: string): Promise<string | undefined> {
  return onOneConnection(url, (db) => describeNewer(db, migrationFolder));
}

async function describeNewer(db: Kysely<unknown>, folder: URL): Promise<string | undefined> {
  if (await isMissing(db, 'to_regclass', 'tollbook.migration')) return undefined;
  const known = (await readMigrations(folder)).map(({ name }) => name);
  const { rows } = await sql<{ name: string }>`
    select name from tollbook.migration where not name = any (${known}) order by name`.execute(db);
  if (rows.length === 0) return undefined;
  const names = rows.map(({ name }) => name).join(', ');
  return `The database is newer than this program: it has the migrations ${names}. Use the version that made them, or a newer one.`;
}

/** Its functions would be replaced by older ones, and those that this version does not know dropped. */
async function refuseNewer(db: Kysely<unknown>, folder: URL): Promise<void> {
  const newer = await describeNewer(db, folder);
  if (newer !== undefined) throw new Error(newer);
}

/** The migrations of this program that a gateway needs and the database lacks. */
export async function lackedMigrations(pool: pg.Pool): Promise<string[]> {
  const db = queriesOn(pool) as unknown as Kysely<unknown>;
  return (await neededMigrations(db, migrationFolder)).map(({ name }) => name);
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

interface Migration {
  readonly name: string;
  readonly text: string;
  readonly isOutside: boolean;
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).flatMap((file) => /^(\d+-.*)\.sql$/.exec(file)?.[1] ?? []).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(`${name}.sql`, folder), 'utf8');
      return { name, text, isOutside: outsideTransaction.test(text) };
    }),
  );
}

async function missingMigrations(db: Kysely<unknown>, folder: URL): Promise<Migration[]> {
  const all = await readMigrations(folder);
  if (await isMissing(db, 'to_regclass', 'tollbook.migration')) return all;
  const { rows } = await sql<{ name: string }>`select name from tollbook.migration`.execute(db);
  const applied = new Set(rows.map(({ name }) => name));
  return all.filter(({ name }) => !applied.has(name));
}

async function neededMigrations(db: Kysely<unknown>, folder: URL): Promise<Migration[]> {
  return (await missingMigrations(db, folder)).filter(({ isOutside }) => !isOutside);
}

/** To be called in a transaction. Returns what it applied, as in {@link Migrated}. */
async function applyAll(trx: Kysely<unknown>, folder: URL, roles: GrantedRoles): Promise<string[]> {
  await createMigrationTable(trx);
  const missing = await neededMigrations(trx, folder);
  if (missing.length > 0) await dropViews(trx);
  for (const { name, text } of missing) {
    await sql.raw(text).execute(trx);
    await recordMigration(trx, name);
  }
  const ran = [...missing.map(({ name }) => name), ...(await applyFunctionFiles(trx, folder))];
  const wanted = [roles.writer, roles.reader].filter((role) => role !== undefined);
  const old = await grantedRoles(trx);
  const haveChanged = old.length !== wanted.length || wanted.some((role) => !old.includes(role));
  if (ran.length === 0 && !haveChanged) return [];
  await grantAll(trx, folder, { old: new Set([...old, ...wanted]), roles });
  return ran.length === 0 ? ['grants'] : ran;
}

/** Gives the roles exactly the rights that the files state. Without a writer role they go to this user, who has them as the owner. */
async function grantAll(
  trx: Kysely<unknown>,
  folder: URL,
  { old, roles }: { readonly old: ReadonlySet<string>; readonly roles: GrantedRoles },
): Promise<void> {
  for (const role of old) await revokeAll(trx, role);
  await sql`revoke execute on all functions in schema ${sql.raw(ownSchemas.join(', '))} from public`.execute(
    trx,
  );
  const names = roles.reader === undefined ? [grantsName] : [grantsName, readerGrantsName];
  const files = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')));
  for (const text of [...(await functionGrants(folder)), ...files])
    await sql.raw(rolesNamed(text, roles)).execute(trx);
}

async function recordMigration(db: Kysely<unknown>, name: string): Promise<void> {
  await sql`insert into tollbook.migration (name, applied_at) values (${name}, clock_timestamp())`.execute(
    db,
  );
}

async function applyOutside(db: Kysely<unknown>, { name, text }: Migration): Promise<void> {
  // waits for older transactions, and stops no writer meanwhile
  await sql`set lock_timeout = 0`.execute(db);
  for (const statement of text.split(/;[ \t]*$/m))
    if (/^\s*[^-\s]/m.test(statement)) await sql.raw(statement).execute(db);
  await recordMigration(db, name);
}

async function inTransaction<T>(
  db: Kysely<unknown>,
  use: (trx: Kysely<unknown>) => Promise<T>,
  end: 'commit' | 'rollback' = 'commit',
): Promise<T> {
  const trx = await db.startTransaction().execute();
  try {
    await sql`select set_config('lock_timeout', ${lockWait}, true)`.execute(trx);
    const result = await use(trx);
    await (end === 'commit' ? trx.commit() : trx.rollback()).execute();
    return result;
  } catch (error) {
    // fails only if the connection is lost, and the transaction with it
    if (!trx.isCommitted && !trx.isRolledBack)
      await trx
        .rollback()
        .execute()
        .catch(() => undefined);
    throw error;
  }
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
