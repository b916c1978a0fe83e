import { Kysely, PostgresDialect, sql } from 'kysely';
import type pg from 'pg';
import type { sessionEndings } from '../domain/events/identity-events.ts';
import { queriesOn } from './database.ts';

/** A session that holds now, by the database's clock. */
export interface Session {
  readonly sessionId: string;
  readonly userId: string;
  /** Undefined while the user's account of credit is not open yet. */
  readonly accountId: number | undefined;
}

/** What the account of credit of a user is called. */
export function accountNameOf(userId: string): string {
  return `user:${userId}`;
}

/** The session of this token, if it holds; the token is given as its hash. */
export async function findSession(pool: pg.Pool, tokenHash: string): Promise<Session | undefined> {
  const { rows } = await pool.query<{ id: string; user_id: string; account_id: number | null }>(
    `select session.id, session.user_id, account.account_id from identity.session
     left join tollbook.account on account.name = 'user:' || session.user_id
     where session.token = $1 and session.expires_at > tollbook.clock()`,
    [tokenHash],
  );
  const [row] = rows;
  return row && { sessionId: row.id, userId: row.user_id, accountId: row.account_id ?? undefined };
}

export interface EndedSession {
  readonly sessionId: string;
  readonly userId: string;
  readonly reason: (typeof sessionEndings)[number];
}

/**
 * Ends sessions for everybody at once; returns those that were not ended before. They stay as `ended` until
 * {@link dropSessions} is told that their end is on record.
 */
export async function endSessions(pool: pg.Pool, sessionIds: readonly string[]): Promise<EndedSession[]> {
  const { rows } = await pool.query<EndedSession>(
    `update identity.session set token = 'ended:' || id, expires_at = 'epoch', ended_reason = 'ended'
     where id = any ($1::uuid[]) and ended_reason is null
     returning id as "sessionId", user_id as "userId", ended_reason as reason`,
    [sessionIds],
  );
  return rows;
}

/** Up to `max` sessions that are over, and whose end nobody has dropped yet. */
export async function findEndedSessions(pool: pg.Pool, max: number): Promise<EndedSession[]> {
  const { rows } = await pool.query<EndedSession>(
    `select id as "sessionId", user_id as "userId", coalesce(ended_reason, 'expired') as reason
     from identity.session where expires_at <= tollbook.clock() - interval '1 minute'
     order by expires_at limit $1`,
    [max],
  );
  return rows;
}

export async function dropSessions(pool: pg.Pool, sessionIds: readonly string[]): Promise<void> {
  if (sessionIds.length === 0) return;
  await queriesOn(pool).deleteFrom('identity.session').where('id', 'in', sessionIds).execute();
}

/** Somebody who can sign in. */
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

/** The user whose wallet this is: the given new one where it is nobody's yet. Asked many times at once it is one user. */
export async function userOfWallet(
  pool: pg.Pool,
  address: string,
  asNew: { readonly userId: string; readonly name: string; readonly email: string },
): Promise<string> {
  const { rows } = await pool.query<{ id: string }>('select identity.user_of_wallet($1, $2, $3, $4) as id', [
    address,
    asNew.userId,
    asNew.name,
    asNew.email,
  ]);
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('a wallet belongs to nobody');
  return id;
}

export async function storeNonce(pool: pg.Pool, nonce: string): Promise<void> {
  await queriesOn(pool)
    .insertInto('identity.siwe_nonce')
    .values({ nonce, issued_at: sql`tollbook.clock()` })
    .execute();
}

/** Uses a nonce up: of many who bring the same, one is told true. False for one that is unknown, or too old. */
export async function consumeNonce(pool: pg.Pool, nonce: string, maxAgeSecs: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    `delete from identity.siwe_nonce
     where nonce = $1 and issued_at > tollbook.clock() - $2 * interval '1 second'`,
    [nonce, maxAgeSecs],
  );
  return rowCount === 1;
}

/** How often a subject may do something in any minute. */
export interface Allowance {
  readonly subject: string;
  readonly perMinute: number;
}

export interface AttemptResult {
  /** 0: the attempt was counted against every subject; else it was against none, and this long there is no use in another. */
  readonly retryMs: number;
  /** The first refusal of this minute: a flood of them is one piece of news. */
  readonly isFirstRefusal: boolean;
}

/** Counts an attempt in all processes together, against all of the subjects or none of them. */
export async function countAttempt(pool: pg.Pool, allowances: readonly Allowance[]): Promise<AttemptResult> {
  const { rows } = await pool.query<AttemptResult>(
    'select retry_ms as "retryMs", is_first_refusal as "isFirstRefusal" from tollbook.count_attempts($1, $2)',
    [allowances.map(({ subject }) => subject), allowances.map(({ perMinute }) => perMinute)],
  );
  const [turn] = rows;
  if (!turn) throw new Error('an attempt was not decided about');
  return turn;
}

/** Drops up to `max` of each kind of what nobody can use any more; returns how many went. */
export async function pruneIdentity(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ swept: number }>('select tollbook.prune_identity($1) as swept', [max]);
  return rows[0]?.swept ?? 0;
}

/** The tables of people as better-auth speaks to them. It shares the pool, which somebody else closes. */
export function openIdentityDatabase(pool: pg.Pool): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) }).withSchema('identity');
}

/** Notes that a user reads the mail of their address. */
export async function markEmailProven(pool: pg.Pool, userId: string): Promise<void> {
  await queriesOn(pool)
    .updateTable('identity.user')
    .set({ email_verified: true, updated_at: sql`tollbook.clock()` })
    .where('id', '=', userId)
    .execute();
}
