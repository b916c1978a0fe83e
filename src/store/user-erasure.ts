import type pg from 'pg';
import { queriesOn } from './database.ts';
import { callFunction } from './functions.ts';

/** The addresses of a user's wallets. */
export async function findWalletsOf(pool: pg.Pool, userId: string): Promise<string[]> {
  const rows = await queriesOn(pool)
    .selectFrom('identity.wallet')
    .select('address')
    .where('user_id', '=', userId)
    .execute();
  return rows.map(({ address }) => address);
}

/** Whether the user of an account was erased, or is being erased. */
export async function isAccountClosed(pool: pg.Pool, accountId: number): Promise<boolean> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.account')
    .select('account_id')
    .where('account_id', '=', accountId)
    .where('closed_at', 'is not', null)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Deletes what the database has of a user beside the ledger; the account must be closed. False, with nothing changed, while
 * there is a session: its end must be recorded first.
 * @param subjects the beginnings of the rate limits' subjects that name the user
 */
export function eraseUserData(
  pool: pg.Pool,
  userId: string,
  accountId: number,
  subjects: readonly string[],
): Promise<boolean> {
  return callFunction(pool, 'erase_user', [userId, accountId, subjects]);
}

/** Deletes up to `max` results of ended calls that these wallets have paid for; returns how many. */
export function eraseResults(pool: pg.Pool, payers: readonly string[], max: number): Promise<number> {
  return callFunction(pool, 'erase_results', [payers, max]);
}
