import { Kysely, PostgresDialect, sql } from 'kysely';
import type pg from 'pg';
import type { sessionEndings } from '../../ledger/rules/identity-events.ts';
import type { Address } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** A session that is valid now, by the database's clock. */
export interface Session {
  readonly sessionId: string;
  readonly userId: string;
  /** Undefined while the user has no credit account yet. */
  readonly accountId: number | undefined;
}

/** The name of a user's credit account. */
export function accountNameOf(userId: string): string {
  return `user:${userId}`;
}

/** The user of a credit account; undefined for an account that is not a user's. */
export function userOfAccount(name: string): string | undefined {
  return /^user:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(name)?.[1];
}

/** The session of this token, if it is valid; the token is given as its hash. */
export async function findSession(pool: pg.Pool, tokenHash: string): Promise<Session | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('identity.session as session')
    .leftJoin('tollbook.account as account', (join) =>
      join.on('account.name', '=', ({ ref }) => sql<string>`'user:' || ${ref('session.user_id')}`),
    )
    .select(['session.id', 'session.user_id', 'account.account_id'])
    .where('session.token', '=', tokenHash)
    .where('session.expires_at', '>', sql<Date>`tollbook.clock()`)
    .where('account.disabled_at', 'is', null)
    .executeTakeFirst();
  return row && { sessionId: row.id, userId: row.user_id, accountId: row.account_id ?? undefined };
}

export interface EndedSession {
  readonly sessionId: string;
  readonly userId: string;
  readonly reason: (typeof sessionEndings)[number];
}

/**
 * Ends sessions in all processes immediately; returns those that were not ended before. Their rows stay as `ended` until
 * {@link dropSessions} is called, once their end is recorded in the ledger.
 */
export async function endSessions(pool: pg.Pool, sessionIds: readonly string[]): Promise<EndedSession[]> {
  const rows = await queriesOn(pool)
    .updateTable('identity.session')
    .set(({ ref }) => ({
      token: sql<string>`'ended:' || ${ref('id')}`,
      expires_at: sql<Date>`'epoch'`,
      ended_reason: 'ended',
    }))
    .where(({ ref }) => sql<boolean>`${ref('id')} = any (${sessionIds}::uuid[])`)
    .where('ended_reason', 'is', null)
    .returning(['id', 'user_id'])
    .execute();
  return rows.map(({ id, user_id }) => ({ sessionId: id, userId: user_id, reason: 'ended' }));
}

/** Up to `max` sessions that have ended or expired and were not dropped yet. */
export async function findEndedSessions(pool: pg.Pool, max: number): Promise<EndedSession[]> {
  const rows = await queriesOn(pool)
    .selectFrom('identity.session')
    .select(['id', 'user_id', 'ended_reason'])
    .where('expires_at', '<=', sql<Date>`tollbook.clock() - interval '1 minute'`)
    .orderBy('expires_at')
    .limit(max)
    .execute();
  return rows.map((row) => ({
    sessionId: row.id,
    userId: row.user_id,
    reason: row.ended_reason ?? 'expired',
  }));
}

export async function dropSessions(pool: pg.Pool, sessionIds: readonly string[]): Promise<void> {
  if (sessionIds.length === 0) return;
  await queriesOn(pool).deleteFrom('identity.session').where('id', 'in', sessionIds).execute();
}

/** A person who can sign in. */
export interface User {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly isEmailVerified: boolean;
  readonly createdAt: Date;
}

export async function findUser(pool: pg.Pool, userId: string): Promise<User | undefined> {
  return queriesOn(pool)
    .selectFrom('identity.user')
    .select(['id as userId', 'name', 'email', 'email_verified as isEmailVerified', 'created_at as createdAt'])
    .where('id', '=', userId)
    .executeTakeFirst();
}

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The ids of the users with this id, email address or wallet; a contract's address may have another user on each chain. */
export async function findUserIds(pool: pg.Pool, who: string): Promise<string[]> {
  const text = who.toLowerCase();
  const db = queriesOn(pool);
  const rows = await db
    .selectFrom('identity.user')
    .select('id')
    .where(({ or, eb }) =>
      or([eb('email', '=', text), ...(uuidForm.test(text) ? [eb('id', '=', text)] : [])]),
    )
    .union(db.selectFrom('identity.wallet').select('user_id as id').where('address', '=', text))
    .execute();
  return rows.map(({ id }) => id);
}

/** The ids of the sessions of a user that have not ended. */
export async function findSessionsOf(pool: pg.Pool, userId: string): Promise<string[]> {
  const rows = await queriesOn(pool)
    .selectFrom('identity.session')
    .select('id')
    .where('user_id', '=', userId)
    .where('ended_reason', 'is', null)
    .execute();
  return rows.map(({ id }) => id);
}

export interface UserAccount {
  readonly accountId: number;
  /** It was opened now. */
  readonly isNew: boolean;
  /** Its opening is on record: it has or had credit. */
  readonly isRecorded: boolean;
}

/** The credit account of a user, opened if there is none. Its first credit records that: a sign-up alone does not. */
export async function openUserAccount(pool: pg.Pool, userId: string): Promise<UserAccount> {
  const [row] = await callTableFunction(pool, 'open_user_account', [userId]);
  if (!row) throw new Error('the account of a user was opened, but it does not exist');
  return { accountId: row.account_id, isNew: row.is_new, isRecorded: row.is_recorded };
}

/** Whether an operator has disabled this user. */
export async function isUserDisabled(pool: pg.Pool, userId: string): Promise<boolean> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.account')
    .select('account_id')
    .where('name', '=', accountNameOf(userId))
    .where('disabled_at', 'is not', null)
    .executeTakeFirst();
  return row !== undefined;
}

/** Disables the user of an account in all processes immediately, or enables it again. False if nothing changed. */
export function setAccountDisabled(pool: pg.Pool, accountId: number, isDisabled: boolean): Promise<boolean> {
  return callFunction(pool, 'set_account_disabled', [accountId, isDisabled]);
}

/** The signer of a sign-in with a wallet: a key, the same on all chains, or the contract of one chain. */
export interface Wallet {
  readonly address: Address;
  /** The chain of a contract; undefined for a key. */
  readonly contractOn?: number | undefined;
}

/** The user of a wallet; if the wallet has no user, the given new one. Concurrent calls return the same user. */
export async function userOfWallet(
  pool: pg.Pool,
  { address, contractOn = 0 }: Wallet,
  asNew: { readonly userId: string; readonly name: string; readonly email: string },
): Promise<string> {
  const { userId, name, email } = asNew;
  const { id } = await queriesOn(pool)
    .selectNoFrom(
      sql<string>`identity.user_of_wallet(${address}, ${contractOn}, ${userId}, ${name}, ${email})`.as('id'),
    )
    .executeTakeFirstOrThrow();
  return id;
}

export async function storeNonce(pool: pg.Pool, nonce: string): Promise<void> {
  await queriesOn(pool)
    .insertInto('identity.siwe_nonce')
    .values({ nonce, issued_at: sql`tollbook.clock()` })
    .execute();
}

/** Consumes a nonce: of several calls with the same nonce one returns true. False for one that is unknown or too old. */
export async function consumeNonce(pool: pg.Pool, nonce: string, maxAgeSecs: number): Promise<boolean> {
  const { numDeletedRows } = await queriesOn(pool)
    .deleteFrom('identity.siwe_nonce')
    .where('nonce', '=', nonce)
    .where('issued_at', '>', sql<Date>`tollbook.clock() - ${maxAgeSecs} * interval '1 second'`)
    .executeTakeFirstOrThrow();
  return numDeletedRows === 1n;
}

/** How often a subject may do something in any minute. */
export interface Allowance {
  readonly subject: string;
  readonly perMinute: number;
  /** And in a day of UTC; left out: as often as its minutes allow. */
  readonly perDay?: number;
}

export interface AttemptResult {
  /** 0: the attempt was counted against every subject; else against none, and it may be repeated after this time. */
  readonly retryMs: number;
  /** The first refusal of this minute: many refusals are reported once. */
  readonly isFirstRefusal: boolean;
}

/** More than any minute's limit gives in a day. */
const noDay = 2_147_483_647;

/** Counts an attempt over all processes, against all of the subjects or none of them. */
export async function countAttempt(pool: pg.Pool, allowances: readonly Allowance[]): Promise<AttemptResult> {
  const [result] = await callTableFunction(pool, 'count_attempts', [
    allowances.map(({ subject }) => subject),
    allowances.map(({ perMinute }) => perMinute),
    allowances.map(({ perDay = noDay }) => perDay),
  ]);
  if (!result) throw new Error('tollbook.count_attempts returned no row');
  return { retryMs: result.retry_ms, isFirstRefusal: result.is_first_refusal };
}

/** The identity tables for better-auth. It shares the pool, and its owner closes that. */
export function openIdentityDatabase(pool: pg.Pool): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) }).withSchema('identity');
}

/** Records that a user has proven to receive mail at their address. */
export async function markEmailProven(pool: pg.Pool, userId: string): Promise<void> {
  await queriesOn(pool)
    .updateTable('identity.user')
    .set({ email_verified: true, updated_at: sql`tollbook.clock()` })
    .where('id', '=', userId)
    .execute();
}
