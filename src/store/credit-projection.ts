import type pg from 'pg';
import { queriesOn } from './database.ts';
import { defined } from './expressions.ts';
import { activeGeneration, type Page, readPage } from './payments.ts';

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
  return readPage(pool, page);
}
