import pg from 'pg';
import type { Hex } from '../domain/values/primitives.ts';

/** A spend that is to be claimed. */
export interface DueSpend {
  /** `spend:` and the id of its completion. */
  readonly stream: string;
  readonly attempts: number;
  /** The transaction that claimed it, as far as is known: it counts once its block is final. */
  readonly claim: Hex | undefined;
  /** How often that was looked at. */
  readonly looks: number;
}

/** A spend that is not paid yet, or never will be. */
export interface OpenSpend extends Pick<DueSpend, 'stream' | 'attempts'> {
  readonly status: 'open' | 'failed';
  /** A machine word. */
  readonly reason: string | undefined;
  readonly since: Date;
}

/**
 * Looks through up to `max` events that no process has looked through, and notes the spends that were earned. Returns how
 * many events that were. As one simple-protocol message, like all here: a client that vanishes must not keep rows locked.
 */
export async function collectSpends(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ read: number }>(
    `select tollbook.collect_payouts(${Math.trunc(max)}) as read`,
  );
  return rows[0]?.read ?? 0;
}

/** Takes up to `max` spends that are due, for so many seconds: the soonest to expire first. */
export async function takeSpends(pool: pg.Pool, max: number, leaseSecs: number): Promise<DueSpend[]> {
  const { rows } = await pool.query<Omit<DueSpend, 'claim'> & { claim: Hex | null }>(
    `select stream, attempts, transaction as claim, checks as looks from tollbook.take_payouts(${Math.trunc(max)}, ${Math.trunc(leaseSecs)})`,
  );
  return rows.map(({ claim, ...spend }) => ({ ...spend, claim: claim ?? undefined }));
}

/** Looks again after `delayMs` at a spend that this transaction has claimed. */
export async function watchClaim(
  pool: pg.Pool,
  stream: string,
  transaction: Hex,
  delayMs: number,
): Promise<void> {
  const texts = [pg.escapeLiteral(stream), pg.escapeLiteral(transaction), String(Math.trunc(delayMs))];
  await pool.query(`select tollbook.watch_payout(${texts.join(', ')})`);
}

/** Tries a spend again after `delayMs`. */
export async function postponeSpend(
  pool: pg.Pool,
  stream: string,
  delayMs: number,
  reason: string,
): Promise<void> {
  const texts = [pg.escapeLiteral(stream), String(Math.trunc(delayMs)), pg.escapeLiteral(reason)];
  await pool.query(`select tollbook.postpone_payout(${texts.join(', ')})`);
}

/** Done with: paid, or, with a reason, given up. */
export async function endSpend(pool: pg.Pool, stream: string, failure?: string): Promise<void> {
  const reason = failure === undefined ? 'null' : pg.escapeLiteral(failure);
  await pool.query(`select tollbook.end_payout(${pg.escapeLiteral(stream)}, ${reason})`);
}

/** Spends that could not be claimed so far, or never will be, oldest first. */
export async function listTroubledSpends(pool: pg.Pool, limit: number): Promise<OpenSpend[]> {
  const { rows } = await pool.query<Omit<OpenSpend, 'reason'> & { last_reason: string | null }>(
    `select stream, status, attempts, last_reason, created_at as since from tollbook.payout
     where attempts > 0 order by created_at limit $1`,
    [limit],
  );
  return rows.map(({ last_reason, ...spend }) => ({ ...spend, reason: last_reason ?? undefined }));
}

/**
 * Whether a process was not seen for `silentSecs`, by one that was seen all that time itself: where it, or the database, was
 * away, so may have been everybody else.
 */
export async function isProcessGone(
  pool: pg.Pool,
  asked: { readonly processId: string; readonly by: string; readonly silentSecs: number },
): Promise<boolean> {
  const { rows } = await pool.query<{ gone: boolean }>(
    `select exists (select from tollbook.process own where own.process_id = $2
         and own.alive_since <= now - silence and own.heartbeat_at > now - silence / 2)
       and not exists (select from tollbook.process owner where owner.process_id = $1 and owner.heartbeat_at > now - silence)
       as gone
     from (select tollbook.clock() as now, $3 * interval '1 second' as silence) moment`,
    [asked.processId, asked.by, asked.silentSecs],
  );
  return rows[0]?.gone ?? false;
}

/** A spend that asks to be answered before it has landed. */
export interface AskedExposure {
  readonly stream: string;
  readonly scope: string;
  readonly commitment: string;
  readonly nonce: bigint;
  readonly amount: bigint;
  /** The most that may be under way of one account. */
  readonly limit: bigint;
  /** The account on its chain. */
  readonly nextNonce: bigint;
  readonly balance: bigint;
}

/** Whether it may; then it counts as under way until it is ended. Decided for one account at a time, in all processes together. */
export async function exposeSpend(pool: pg.Pool, asked: AskedExposure): Promise<boolean> {
  const { nonce, amount, limit, nextNonce, balance } = asked;
  const texts = [asked.stream, asked.scope, asked.commitment].map((text) => pg.escapeLiteral(text));
  const { rows } = await pool.query<{ may: boolean }>(
    `select tollbook.expose_spend(${[...texts, nonce, amount, limit, nextNonce, balance].join(', ')}) as may`,
  );
  return rows[0]?.may ?? false;
}

/** A spend is under way no more; where it failed, its account is given no exposure again. */
export async function endExposure(pool: pg.Pool, stream: string, hasFailed: boolean): Promise<void> {
  await pool.query(`select tollbook.end_exposure(${pg.escapeLiteral(stream)}, ${hasFailed})`);
}

/** Drops up to `max` exposures that came to nothing a day ago; returns how many went. */
export async function sweepExposures(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ swept: number }>(
    `select tollbook.prune_exposures(${Math.trunc(max)}) as swept`,
  );
  return rows[0]?.swept ?? 0;
}
