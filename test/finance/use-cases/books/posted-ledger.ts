import type { LedgerSource } from '../../../../src/finance/use-cases/books/source.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { appendAll } from '../../../support/log.ts';
import type { StreamEvent } from '../../../support/synthetic-ledger.ts';

export const clockStartMs = Date.parse('2026-01-31T23:52:00Z');

/** A ledger whose clock moves on whenever it is read, so that its events are on both sides of the end of a month. */
export async function ledgerOf(events: readonly StreamEvent[]): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(`create sequence tollbook.tick; grant usage on sequence tollbook.tick to public;
      create or replace function tollbook.clock() returns timestamptz language sql volatile
        as $$ select '${new Date(clockStartMs).toISOString()}'::timestamptz + nextval('tollbook.tick') * interval '10 seconds' $$`),
  );
  await appendAll(database, events);
  return database;
}

/** The same ledger as a file has it: without postings. */
export const asFile = (source: LedgerSource): LedgerSource => ({ ...source, pool: undefined });
