import { sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction } from '../../ledger/store/functions.ts';

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
 * Deletes the data about a user outside the ledger; the account must be closed. False, with nothing changed, while
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

/**
 * Up to `max` users who signed up at least `lifeSecs` ago and never confirmed their address: without a session, a wallet, an account
 * at a provider, credit, holds and keys.
 */
export async function findUnconfirmedUsers(pool: pg.Pool, lifeSecs: number, max: number): Promise<string[]> {
  const { rows } = await queriesOn(pool).executeQuery<{ id: string }>(
    // raw SQL: five conditions that no row exists
    sql<{ id: string }>`
      select person.id from identity."user" person
      left join tollbook.account on account.name = 'user:' || person.id
      where not person.email_verified and person.created_at < tollbook.clock() - ${lifeSecs} * interval '1 second'
        and coalesce(account.balance + account.held, 0) = 0
        and not exists (select from identity.session where session.user_id = person.id)
        and not exists (select from identity.wallet where wallet.user_id = person.id)
        and not exists (select from identity.credential where credential.user_id = person.id and provider_id <> 'credential')
        and not exists (select from tollbook.api_key where api_key.account_id = account.account_id)
        and not exists (select from tollbook.recovered_chat where recovered_chat.account_id = account.account_id)
      order by person.created_at limit ${max}`.compile(queriesOn(pool)),
  );
  return rows.map(({ id }) => id);
}
