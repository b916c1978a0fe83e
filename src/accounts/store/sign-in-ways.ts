import { sql } from 'kysely';
import type pg from 'pg';
import type { Address } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import type { Wallet } from './identity.ts';

/** A session that its user can still use. */
export interface OpenSession {
  readonly sessionId: string;
  readonly startedAt: Date;
  readonly expiresAt: Date;
}

/** Up to `limit` sessions of a user that are valid now, the newest first. */
export async function listOpenSessions(pool: pg.Pool, userId: string, limit: number): Promise<OpenSession[]> {
  return queriesOn(pool)
    .selectFrom('identity.session')
    .select(['id as sessionId', 'created_at as startedAt', 'expires_at as expiresAt'])
    .where('user_id', '=', userId)
    .where('ended_reason', 'is', null)
    .where('expires_at', '>', sql<Date>`tollbook.clock()`)
    .orderBy('created_at', 'desc')
    .limit(limit)
    .execute();
}

/** Whether a session began within the last seconds. */
export async function isFreshSession(pool: pg.Pool, sessionId: string, withinSecs: number): Promise<boolean> {
  const row = await queriesOn(pool)
    .selectFrom('identity.session')
    .select('id')
    .where('id', '=', sessionId)
    .where('created_at', '>', sql<Date>`tollbook.clock() - ${withinSecs} * interval '1 second'`)
    .executeTakeFirst();
  return row !== undefined;
}

/** A password, or an account at a provider. */
export interface Credential {
  readonly credentialId: string;
  /** `credential` for a password. */
  readonly provider: string;
  readonly addedAt: Date;
}

export async function listCredentials(pool: pg.Pool, userId: string): Promise<Credential[]> {
  return queriesOn(pool)
    .selectFrom('identity.credential')
    .select(['id as credentialId', 'provider_id as provider', 'created_at as addedAt'])
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .execute();
}

export interface LinkedWallet {
  readonly address: string;
  /** The chain of a contract; 0 for a key. */
  readonly chainId: number;
  readonly addedAt: Date;
}

export async function listWallets(pool: pg.Pool, userId: string): Promise<LinkedWallet[]> {
  return queriesOn(pool)
    .selectFrom('identity.wallet')
    .select(['address', 'chain_id as chainId', 'created_at as addedAt'])
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .execute();
}

/** Adds a wallet to a user; returns whose it is then. Undefined if the user does not exist any more. */
export async function linkWallet(
  pool: pg.Pool,
  { address, contractOn = 0 }: Wallet,
  userId: string,
): Promise<string | undefined> {
  const { owner } = await queriesOn(pool)
    .selectNoFrom(sql<string | null>`identity.link_wallet(${address}, ${contractOn}, ${userId})`.as('owner'))
    .executeTakeFirstOrThrow();
  return owner ?? undefined;
}

/**
 * Removes a wallet of a user. `last`: nothing else of these providers, and no other wallet, would be left to sign in with;
 * `unknown`: it is not a wallet of the user.
 */
export async function unlinkWallet(
  pool: pg.Pool,
  address: Address,
  userId: string,
  providers: readonly string[],
): Promise<'removed' | 'last' | 'unknown'> {
  const { outcome } = await queriesOn(pool)
    .selectNoFrom(
      sql<
        'removed' | 'last' | 'unknown'
      >`identity.unlink_wallet(${address}, ${userId}, ${providers}::text[])`.as('outcome'),
    )
    .executeTakeFirstOrThrow();
  return outcome;
}
