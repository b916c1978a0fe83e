import { readdir, readFile } from 'node:fs/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { openPool } from './database.ts';

const folder = new URL('../../migrations/', import.meta.url);

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

/** The migrations this version of Tollbook ships, in order. */
async function migrationNames(): Promise<string[]> {
  const files = await readdir(folder);
  return files
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.slice(0, -'.sql'.length))
    .toSorted();
}

/**
 * Brings a database up to this version; two at once wait for each other.
 * Returns the names of the migrations it ran. Throws the first database error, with nothing half done.
 */
export async function migrate(url: string): Promise<string[]> {
  return withMigrator(url, async (migrator) => {
    const { error, results } = await migrator.migrateToLatest();
    if (error) throw error;
    return (results ?? [])
      .filter(({ status }) => status === 'Success')
      .map(({ migrationName }) => migrationName);
  });
}

/** The migrations that this database still lacks. */
export async function pendingMigrations(url: string): Promise<string[]> {
  return withMigrator(url, async (migrator) => {
    const all = await migrator.getMigrations();
    return all.filter(({ executedAt }) => !executedAt).map(({ name }) => name);
  });
}

async function withMigrator<T>(url: string, use: (migrator: Migrator) => Promise<T>): Promise<T> {
  const db = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: openPool({ url, maxConnections: 1 }) }),
  });
  try {
    return await use(new Migrator({ db, provider: sqlFiles, migrationTableSchema: 'tollbook' }));
  } finally {
    await db.destroy();
  }
}
