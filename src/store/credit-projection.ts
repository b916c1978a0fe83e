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

/** Those of the next `max` events that have one of the types, in order, and the last of the `max`; undefined where there are none. */
export async function readNextOfTypes(
  pool: pg.Pool,
  afterSeq: number,
  max: number,
  types: readonly string[],
): Promise<{ readonly last: number; readonly events: readonly RecordedEvent[] } | undefined> {
  const rows = await queriesOn(pool)
    .with(
      (cte) => cte('next').materialized(),
      (db) =>
        db
          .selectFrom('tollbook.event')
          .select(['seq', 'type', 'leaf'])
          .where('lane_id', '=', 1)
          .where('seq', '>', afterSeq)
          .orderBy('seq')
          .limit(max),
    )
    .selectFrom((db) =>
      db
        .selectFrom('next')
        .select(({ fn }) => fn.max('seq').as('last'))
        .as('ending'),
    )
    .leftJoin(
      (db) =>
        db
          .selectFrom('next')
          .select(['seq', 'leaf'])
          .where(({ ref }) => sql<boolean>`${ref('type')} = any (${types})`)
          .as('wanted'),
      (join) => join.onTrue(),
    )
    .select(['ending.last', 'wanted.leaf'])
    .orderBy('wanted.seq')
    .execute();
  const last = rows[0]?.last;
  return last ? { last, events: rows.flatMap(({ leaf }) => (leaf ? [decodeLeaf(leaf)] : [])) } : undefined;
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
