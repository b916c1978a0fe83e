import { sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from './database.ts';

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
