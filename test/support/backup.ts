import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { TestDatabase } from './database.ts';

const admin = async (...statements: string[]) => {
  const client = new pg.Client(inject('serverUrl').replace('DATABASE', 'postgres'));
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
};

/**
 * Makes a backup copy of a database. Returns a function that restores it, as a copy of the files would: PostgreSQL gives the same
 * answers about itself as before. A database that was created anew has another number here, so that is put on record.
 */
export async function backUp(database: TestDatabase): Promise<() => Promise<void>> {
  const { rows } = await database.pool.query<{ name: string }>('select current_database() as name');
  const name = rows[0]!.name;
  const backup = `${name}_backup`;
  await database.away(true);
  await admin(`create database ${backup} template ${name} strategy file_copy`);
  await database.away(false);
  onTestFinished(() => admin(`drop database if exists ${backup} with (force)`));
  return async () => {
    await database.away(true);
    await admin(
      `drop database ${name} with (force)`,
      `create database ${name} template ${backup} strategy file_copy`,
    );
    await database.asOwner((owner) =>
      owner.query(
        'update tollbook.database_identity set oid = (select oid from pg_database where datname = current_database())',
      ),
    );
  };
}
