import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { readerRole, writerRole } from './database.ts';

const folder = new URL('../../../migrations/functions/', import.meta.url);

/** SQL functions of one family, with their grants and triggers. Applied again whenever the text changes. */
interface FunctionFile {
  /** `functions/NAME`, without the ending. */
  readonly name: string;
  readonly text: string;
  /** Hex. */
  readonly sha256: string;
  /** Qualified names of the functions that it defines; there are no overloads. */
  readonly functions: readonly string[];
}

async function readFunctionFiles(): Promise<FunctionFile[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8');
      return {
        name: `functions/${name.slice(0, -'.sql'.length)}`,
        text,
        sha256: createHash('sha256').update(text).digest('hex'),
        functions: [...text.matchAll(/^create or replace function (\w+\.\w+)\(/gm)].map(
          ([, found = '']) => found,
        ),
      };
    }),
  );
}

/** The names of the files whose text this database does not have. */
export async function changedFunctionFiles(db: Kysely<unknown>): Promise<string[]> {
  const files = await readFunctionFiles();
  const applied = await appliedHashes(db);
  return files.filter(({ name, sha256 }) => applied.get(name) !== sha256).map(({ name }) => name);
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

/** The roles of one database that get rights; undefined: this user, the owner, who has them anyway. */
export interface GrantedRoles {
  readonly writer: string | undefined;
  readonly reader: string | undefined;
}

/** SQL text with the roles of one database in place of their general names. */
export function rolesNamed(text: string, { writer, reader }: GrantedRoles): string {
  return roleNamed(roleNamed(text, writerRole, writer), readerRole, reader);
}

function roleNamed(text: string, general: string, role: string | undefined): string {
  const name = role === undefined ? 'current_user' : pg.escapeIdentifier(role);
  return text.replaceAll(new RegExp(`\\b${general}\\b`, 'g'), () => name);
}

/**
 * Applies the changed files, or all, and drops the functions that no file defines any more. Their grants are for `roles`.
 * Returns the names of the files it applied. To be called in a transaction.
 */
export async function applyFunctionFiles(
  db: Kysely<unknown>,
  roles: GrantedRoles,
  areAll: boolean,
): Promise<string[]> {
  const files = (await readFunctionFiles()).map((file) => ({ ...file, text: rolesNamed(file.text, roles) }));
  const applied = await appliedHashes(db);
  const changed = files.filter(({ name, sha256 }) => areAll || applied.get(name) !== sha256);
  const removed = [...applied.keys()].filter((name) => !files.some((file) => file.name === name));
  if (changed.length === 0 && removed.length === 0) return [];
  await setBodyChecks(db, false);
  for (const file of changed) await applyFunctionFile(db, file);
  // functions of one file call those of another, so their bodies can be checked only once all of them exist
  await setBodyChecks(db, true);
  for (const { text } of changed) await sql.raw(text).execute(db);
  await sql`delete from tollbook.function_file where name = any (${removed})`.execute(db);
  await dropUndefined(db, new Set(files.flatMap(({ functions }) => functions)));
  await sql`revoke execute on all functions in schema tollbook, identity from public`.execute(db);
  return changed.map(({ name }) => name);
}

async function setBodyChecks(db: Kysely<unknown>, isOn: boolean): Promise<void> {
  await sql`select set_config('check_function_bodies', ${isOn ? 'on' : 'off'}, true)`.execute(db);
}

async function applyFunctionFile(
  db: Kysely<unknown>,
  { name, text, sha256, functions }: FunctionFile,
): Promise<void> {
  const before = await storedFunctions(db, functions);
  await sql`savepoint function_file`.execute(db);
  try {
    await sql.raw(text).execute(db);
  } catch (error) {
    if (!isOfOtherForm(error)) throw error;
    await sql`rollback to savepoint function_file`.execute(db);
    for (const { signature } of before) await dropFunction(db, signature);
    await sql.raw(text).execute(db);
  }
  await sql`release savepoint function_file`.execute(db);
  await dropOverloads(db, before, await storedFunctions(db, functions));
  await sql`
    insert into tollbook.function_file (name, sha256) values (${name}, ${Buffer.from(sha256, 'hex')})
    on conflict (name) do update set sha256 = excluded.sha256`.execute(db);
}

/**
 * `create or replace` cannot change what a function returns, nor the names of its parameters; a function with another parameter exists next to its old
 * form, and a grant does not say which is meant.
 */
function isOfOtherForm(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '42P13' || error.code === '42725');
}

interface StoredFunction {
  readonly name: string;
  /** With the types of its arguments, as `drop function` takes it. */
  readonly signature: string;
}

async function storedFunctions(db: Kysely<unknown>, names?: readonly string[]): Promise<StoredFunction[]> {
  const { rows } = await sql<StoredFunction>`
    select * from (
      select format('%s.%s', pronamespace::regnamespace, proname) as name, oid::regprocedure::text as signature
      from pg_proc where pronamespace in ('tollbook'::regnamespace, 'identity'::regnamespace)) stored
    where ${names ?? null}::text[] is null or name = any (${names ?? null}::text[])`.execute(db);
  return rows;
}

/** A function whose arguments changed was created next to its old form. */
async function dropOverloads(
  db: Kysely<unknown>,
  before: readonly StoredFunction[],
  after: readonly StoredFunction[],
): Promise<void> {
  const old = new Set(before.map(({ signature }) => signature));
  for (const { name, signature } of after) {
    const isReplaced = after.some((other) => other.name === name && !old.has(other.signature));
    if (old.has(signature) && isReplaced) await dropFunction(db, signature);
  }
}

async function dropUndefined(db: Kysely<unknown>, defined: ReadonlySet<string>): Promise<void> {
  for (const { name, signature } of await storedFunctions(db)) {
    if (!defined.has(name)) await dropFunction(db, signature);
  }
}

async function dropFunction(db: Kysely<unknown>, signature: string): Promise<void> {
  await sql.raw(`drop function ${signature}`).execute(db);
}
