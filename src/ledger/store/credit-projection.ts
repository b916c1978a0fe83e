import type pg from 'pg';
import { queriesOn } from './database.ts';
import { defined } from './expressions.ts';
import type { AccountCredit } from './account-credit.ts';
import { activeGeneration, type Page, readPage } from './payments.ts';

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
