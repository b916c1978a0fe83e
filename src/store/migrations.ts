import { readdir, readFile } from 'node:fs/promises';
import { Kysely, PostgresAdapter, PostgresDialect, sql } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { openPool } from './database.ts';
import { applyFunctionFiles, changedFunctionFiles } from './function-files.ts';

const folder = new URL('../../migrations/', import.meta.url);

/** The dump in the repository, beside the migrations. */
const dumpName = 'schema';

/** Plain SQL files, forward only, in the order of their names. */
const sqlFiles: MigrationProvider = {
  async getMigrations() {
    const migrations: Record<string, Migration> = {};
    for (const name of await migrationNames()) {
      const text = await readFile(new URL(`${name}.sql`, folder), 'utf8');
      migrations[name] = {
        up: async (db) => {
          await sql.raw(text).execute(db);
        },
      };
    }
    return migrations;
  },
};

async function migrationNames(): Promise<string[]> {
  const files = await readdir(folder);
  return files
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.slice(0, -'.sql'.length))
    .filter((name) => name !== dumpName)
    .toSorted();
}

/**
 * Brings a database up to this version in one transaction; concurrent runs wait for each other.
 * Returns what it applied: the names of migrations, then `functions/NAME` for each function file whose text has changed.
 * Throws the first database error; then nothing was changed.
 */
export async function migrate(url: string): Promise<string[]> {
  return withDatabase(url, (db) =>
    db.transaction().execute(async (trx) => {
      await sql`select set_config('lock_timeout', '30s', true)`.execute(trx);
      await sql`select pg_advisory_xact_lock(hashtext('tollbook.migrate'))`.execute(trx);
      const { error, results = [] } = await migratorOf(trx).migrateToLatest();
      if (error) throw error;
      return [...results.map(({ migrationName }) => migrationName), ...(await applyFunctionFiles(trx))];
    }),
  );
}

/** The migrations that this database still lacks, and the function files whose text it does not have. */
export async function pendingMigrations(url: string): Promise<string[]> {
  return withDatabase(url, async (db) => {
    const all = await migratorOf(db).getMigrations();
    const missing = all.filter(({ executedAt }) => !executedAt).map(({ name }) => name);
    return [...missing, ...(await changedFunctionFiles(db))];
  });
}

function migratorOf(db: Kysely<unknown>): Migrator {
  return new Migrator({ db, provider: sqlFiles, migrationTableSchema: 'tollbook' });
}

async function withDatabase<T>(url: string, use: (db: Kysely<unknown>) => Promise<T>): Promise<T> {
  const db = new Kysely<unknown>({
    dialect: new MigrationDialect({ pool: openPool({ url, maxConnections: 1 }) }),
  });
  try {
    return await use(db);
  } finally {
    await db.destroy();
  }
}

/**
 * `migrate` holds its own lock until its transaction ends. The migrator would release its session lock inside the
 * transaction, which fails after an error and hides that error.
 */
class MigrationDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new (class extends PostgresAdapter {
      override async acquireMigrationLock(): Promise<void> {}
      override async releaseMigrationLock(): Promise<void> {}
    })();
  }
}
