import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  appendStatement,
  type BatchAnswer,
  type EncodedCommand,
  type HaltAnswer,
  type UncontendedAnswer,
} from '../../src/ledger/store/append-batch.ts';
import { uncontendedStatement } from '../../src/ledger/store/uncontended.ts';
import { createDatabase, type TestDatabase } from './database.ts';

type Answer = BatchAnswer | UncontendedAnswer | HaltAnswer | null;

/** A sender of batches that decides nothing itself: the two ways into the ledger, one number each. */
export function senderOn({ pool }: TestDatabase) {
  const flusher = randomUUID();
  const run = async (text: string): Promise<Answer> => {
    const result: pg.QueryResult<{ answer: Answer }> | pg.QueryResult<{ answer: Answer }>[] =
      await pool.query(text);
    return (Array.isArray(result) ? result.at(-1) : result)?.rows[0]?.answer ?? null;
  };
  return {
    write: (no: number, batch: readonly EncodedCommand[]) =>
      run(uncontendedStatement(1, flusher, no, 0, batch) ?? 'select null as answer'),
    decide: (no: number, batch: readonly EncodedCommand[]) => run(appendStatement(1, flusher, no, 0, batch)),
  };
}

/** The same in every database. */
export const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** All rows of these queries, by name. */
export async function rowsOf(
  { pool }: TestDatabase,
  queries: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const names = Object.entries(queries);
  const rows = await Promise.all(names.map(async ([name, query]) => [name, (await pool.query(query)).rows]));
  return Object.fromEntries(rows) as Record<string, unknown>;
}

/** A database whose clock stands still. */
export async function stoppedDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:00:00.123Z')));
  return database;
}

/** SQL of the database's owner. */
export const clockAt = (at: string): string =>
  `create or replace function tollbook.clock() returns timestamptz language sql volatile
    as $$ select '${at}'::timestamptz $$;`;
