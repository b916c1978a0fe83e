import { sql } from 'kysely';
import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import { queriesOn } from './database.ts';
import { defined } from './expressions.ts';
import { callFunction } from './functions.ts';
import { activeGeneration, type Page, readPage } from './payments.ts';
import type { Projection } from './projection.ts';

/** The movements of one account's credit by some events, or by all of them. Micros. */
export interface AccountCredit {
  readonly account_id: number;
  readonly name: string | null;
  readonly balance: string;
  readonly held: string;
  readonly granted: string;
  readonly topped_up: string;
  /** Without the top-ups that were reversed. */
  readonly captured: string;
  readonly expired: string;
  /** The last event that is included. */
  readonly last_seq: number;
}

/** The last of the next `max` events; undefined where there are none. */
export async function readLastOf(pool: pg.Pool, afterSeq: number, max: number): Promise<number | undefined> {
  const db = queriesOn(pool);
  const row = await db
    .selectFrom(
      db
        .selectFrom('tollbook.event')
        .select('seq')
        .where('lane_id', '=', 1)
        .where('seq', '>', afterSeq)
        .orderBy('seq')
        .limit(max)
        .as('next'),
    )
    .select(({ fn }) => fn.max('seq').as('last'))
    .executeTakeFirst();
  return row?.last ?? undefined;
}

/** The events after a place up to another one that have one of the types, in order. */
export async function readOfTypes(
  pool: pg.Pool,
  afterSeq: number,
  last: number,
  types: readonly string[],
): Promise<RecordedEvent[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select('leaf')
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('seq', '<=', last)
    .where(({ ref }) => sql<boolean>`${ref('type')} = any (${types})`)
    .orderBy('seq')
    .execute();
  return rows.map(({ leaf }) => decodeLeaf(leaf));
}

/** Adds to accounts and moves the generation's cursor, in one transaction. False, with nothing added, where the cursor is elsewhere. */
export function applyCredit(
  pool: pg.Pool,
  { generation, seq }: Projection,
  last: number,
  moved: readonly AccountCredit[],
): Promise<boolean> {
  return callFunction(pool, 'apply_credit', [generation, seq, last, moved]);
}

/** Accounts after an id, in the order of their ids; only the one with `name` where it is given. */
export function listAccountCredit(
  pool: pg.Pool,
  { name }: { readonly name?: string | undefined },
  afterId: number,
  limit: number,
): Promise<Page<AccountCredit>> {
  const db = queriesOn(pool);
  const page = db
    .selectFrom('tollbook.account_credit')
    .select(['account_id', 'name', 'last_seq'])
    .select(({ cast }) => [
      cast<string>('balance', 'text').as('balance'),
      cast<string>('held', 'text').as('held'),
      cast<string>('granted', 'text').as('granted'),
      cast<string>('topped_up', 'text').as('topped_up'),
      cast<string>('captured', 'text').as('captured'),
      cast<string>('expired', 'text').as('expired'),
    ])
    .where('generation', '=', activeGeneration(db))
    .where('account_id', '>', afterId)
    .where(({ and }) => and(defined({ name })))
    .orderBy('tollbook.account_credit.account_id')
    .limit(limit);
  return readPage(pool, page, 'credit_seq');
}
