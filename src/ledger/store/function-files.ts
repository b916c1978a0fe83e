import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { ownSchemas } from './schema-objects.ts';

/** SQL functions of one family, with their triggers or views and their grants. Applied again whenever the text changes. */
interface FunctionFile {
  /** `functions/NAME`, without the ending. */
  readonly name: string;
  /** The whole text without the grants: functions, triggers and views. */
  readonly definitions: string;
  readonly grants: readonly string[];
  /** Hex, of the whole text. */
  readonly sha256: string;
  /** Qualified names of the functions that it defines; there are no overloads. */
  readonly functions: readonly string[];
  readonly triggers: readonly string[];
  readonly views: readonly string[];
}

const grant = /^grant execute on function [^;]+;/gm;

/** By their names; files with views last, since PostgreSQL defines no view before the functions that it uses. */
async function readFunctionFiles(migrations: URL): Promise<FunctionFile[]> {
  const folder = new URL('functions/', migrations);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted();
  const files = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8');
      const namesAfter = (words: string) =>
        [...text.matchAll(new RegExp(`^create or replace ${words} ([\\w.]+)`, 'gm'))].map(
          ([, found = '']) => found,
        );
      return {
        name: `functions/${name.slice(0, -'.sql'.length)}`,
        definitions: text.replaceAll(grant, ''),
        grants: text.match(grant) ?? [],
        sha256: createHash('sha256').update(text).digest('hex'),
        functions: namesAfter('function'),
        triggers: namesAfter('trigger'),
        views: namesAfter('view'),
      };
    }),
  );
  return files.toSorted((a, b) => Math.sign(a.views.length) - Math.sign(b.views.length));
}

/** The names of the files whose text this database does not have. */
export async function changedFunctionFiles(db: Kysely<unknown>, migrations: URL): Promise<string[]> {
  const files = await readFunctionFiles(migrations);
  const applied = await appliedHashes(db);
  return files.filter(({ name, sha256 }) => applied.get(name) !== sha256).map(({ name }) => name);
}

/** The grants of all files: valid once {@link applyFunctionFiles} has left one function of each name. */
export async function functionGrants(migrations: URL): Promise<string[]> {
  return (await readFunctionFiles(migrations)).flatMap(({ grants }) => grants);
}

async function appliedHashes(db: Kysely<unknown>): Promise<ReadonlyMap<string, string>> {
  const table = await sql<{
    name: string | null;
  }>`select to_regclass('tollbook.function_file') as name`.execute(db);
  if (table.rows[0]?.name == null) return new Map();
  const { rows } = await sql<{ name: string; sha256: string }>`
    select name, encode(sha256, 'hex') as sha256 from tollbook.function_file`.execute(db);
  return new Map(rows.map(({ name, sha256 }) => [name, sha256]));
}

/**
 * Applies the files that have changed, and those whose functions are missing or have overloads in this database, or whose views are
 * missing. Drops the functions, triggers and views that no file defines any more. Sets no rights.
 * Returns the names of the files that it applied or no longer found. To be called in a transaction.
 */
export async function applyFunctionFiles(db: Kysely<unknown>, migrations: URL): Promise<string[]> {
  const files = await readFunctionFiles(migrations);
  const applied = await appliedHashes(db);
  const removed = [...applied.keys()].filter((name) => !files.some((file) => file.name === name));
  if (removed.length === 0 && (await outdated(db, files, applied)).length === 0) return [];
  await dropViews(db);
  const changed = await outdated(db, files, applied);
  const before = await storedFunctions(db);
  await setBodyChecks(db, false);
  for (const file of changed) await define(db, file);
  await dropUndefined(db, files, staleFunctions(changed, before, await storedFunctions(db)));
  // functions of one file call those of another, so their bodies can be checked only once all of them exist
  await setBodyChecks(db, true);
  for (const { name, definitions, sha256 } of changed) {
    await sql.raw(definitions).execute(db);
    await sql`
      insert into tollbook.function_file (name, sha256) values (${name}, ${Buffer.from(sha256, 'hex')})
      on conflict (name) do update set sha256 = excluded.sha256`.execute(db);
  }
  await sql`delete from tollbook.function_file where name = any (${removed})`.execute(db);
  return [...changed.map(({ name }) => name), ...removed];
}

async function outdated(
  db: Kysely<unknown>,
  files: readonly FunctionFile[],
  applied: ReadonlyMap<string, string>,
): Promise<FunctionFile[]> {
  const stored = await storedFunctions(db);
  const present = await storedViews(db);
  const isUnique = (name: string) => stored.filter((one) => one.name === name).length === 1;
  return files.filter(
    ({ name, sha256, functions, views }) =>
      applied.get(name) !== sha256 ||
      !functions.every(isUnique) ||
      !views.every((view) => present.includes(view)),
  );
}

async function storedViews(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select format('%s.%I', relnamespace::regnamespace, relname) as name
    from pg_class where relkind = 'v' and relnamespace::regnamespace::text = any (${ownSchemas})`.execute(db);
  return rows.map(({ name }) => name);
}

/**
 * PostgreSQL changes no column and drops no function that a view uses. So all views go before anything else changes, with what others have
 * built on them; {@link applyFunctionFiles} misses them and defines them again.
 */
export async function dropViews(db: Kysely<unknown>): Promise<void> {
  for (const view of await storedViews(db)) await sql.raw(`drop view if exists ${view} cascade`).execute(db);
}

async function setBodyChecks(db: Kysely<unknown>, isOn: boolean): Promise<void> {
  await sql`select set_config('check_function_bodies', ${isOn ? 'on' : 'off'}, true)`.execute(db);
}

/**
 * `create or replace` cannot change what a function returns, nor the names of its parameters: then the old functions of the file are
 * dropped first. Functions of triggers stay, since PostgreSQL drops no function that a trigger uses, and their form never changes.
 */
async function define(db: Kysely<unknown>, { definitions, functions }: FunctionFile): Promise<void> {
  await sql`savepoint function_file`.execute(db);
  try {
    await sql.raw(definitions).execute(db);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && error.code === '42P13')) throw error;
    await sql`rollback to savepoint function_file`.execute(db);
    for (const { name, signature, isOfTrigger } of await storedFunctions(db))
      if (functions.includes(name) && !isOfTrigger) await dropFunction(db, signature);
    await sql.raw(definitions).execute(db);
  }
  await sql`release savepoint function_file`.execute(db);
}

interface StoredFunction {
  readonly name: string;
  /** With the types of its arguments, as `drop function` takes it. */
  readonly signature: string;
  /** Differs after each `create or replace`. */
  readonly version: string;
  readonly isOfTrigger: boolean;
}

async function storedFunctions(db: Kysely<unknown>): Promise<StoredFunction[]> {
  const { rows } = await sql<StoredFunction>`
    select format('%s.%s', pronamespace::regnamespace, proname) as name, oid::regprocedure::text as signature,
      format('%s %s', oid, xmin) as version, prorettype = 'trigger'::regtype as "isOfTrigger"
    from pg_proc where pronamespace::regnamespace::text = any (${ownSchemas})`.execute(db);
  return rows;
}

/** Those that a changed file defined with other arguments before: it created the new form next to them. */
function staleFunctions(
  changed: readonly FunctionFile[],
  before: readonly StoredFunction[],
  after: readonly StoredFunction[],
): StoredFunction[] {
  const defined = new Set(changed.flatMap(({ functions }) => functions));
  const old = new Set(before.map(({ version }) => version));
  return after.filter(({ name, version }) => defined.has(name) && old.has(version));
}

async function dropUndefined(
  db: Kysely<unknown>,
  files: readonly FunctionFile[],
  stale: readonly StoredFunction[],
): Promise<void> {
  const { rows } = await sql<{ name: string; table: string }>`
    select tgname as name, tgrelid::regclass::text as table from pg_trigger join pg_proc on pg_proc.oid = tgfoid
    where not tgisinternal and pronamespace::regnamespace::text = any (${ownSchemas})
      and not tgname::text = any (${files.flatMap(({ triggers }) => triggers)})`.execute(db);
  for (const { name, table } of rows)
    await sql`drop trigger ${sql.id(name)} on ${sql.raw(table)}`.execute(db);
  const defined = new Set(files.flatMap(({ functions }) => functions));
  const undefinedNow = (await storedFunctions(db)).filter(({ name }) => !defined.has(name));
  for (const { signature } of [...stale, ...undefinedNow]) await dropFunction(db, signature);
}

async function dropFunction(db: Kysely<unknown>, signature: string): Promise<void> {
  await sql.raw(`drop function ${signature}`).execute(db);
}
