import pg from 'pg';
import type { Hex } from '../domain/values/primitives.ts';
import { queriesOn } from './database.ts';

/** An earned spend that is to be paid out. */
export interface DuePayout {
  /** `spend:` and the id of its completion. */
  readonly stream: string;
  readonly attempts: number;
  /** The payout transaction, where one is known: it counts once its block is final. */
  readonly transaction: Hex | undefined;
  /** How often that transaction was checked. */
  readonly checks: number;
}

/** A payout that is not done, or that failed for good. */
export interface OpenPayout extends Pick<DuePayout, 'stream' | 'attempts'> {
  readonly status: 'open' | 'failed';
  /** An error code. */
  readonly reason: string | undefined;
  readonly since: Date;
}

/**
 * Reads up to `max` events that no process has read yet and inserts a payout for each earned spend. Returns how many events
 * it read. One simple-protocol message, like all here: a client that vanishes must not keep rows locked.
 */
export async function collectPayouts(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ read: number }>(
    `select tollbook.collect_payouts(${Math.trunc(max)}) as read`,
  );
  return rows[0]?.read ?? 0;
}

/** Takes up to `max` payouts that are due, for `leaseSecs`: the soonest to expire first. */
export async function takePayouts(pool: pg.Pool, max: number, leaseSecs: number): Promise<DuePayout[]> {
  const { rows } = await pool.query<Omit<DuePayout, 'transaction'> & { transaction: Hex | null }>(
    `select stream, attempts, transaction, checks from tollbook.take_payouts(${Math.trunc(max)}, ${Math.trunc(leaseSecs)})`,
  );
  return rows.map(({ transaction, ...payout }) => ({ ...payout, transaction: transaction ?? undefined }));
}

/** Records the payout transaction of a spend; it is checked again after `delayMs`. */
export async function watchPayout(
  pool: pg.Pool,
  stream: string,
  transaction: Hex,
  delayMs: number,
): Promise<void> {
  const texts = [pg.escapeLiteral(stream), pg.escapeLiteral(transaction), String(Math.trunc(delayMs))];
  await pool.query(`select tollbook.watch_payout(${texts.join(', ')})`);
}

/** Tries a payout again after `delayMs`. */
export async function postponePayout(
  pool: pg.Pool,
  stream: string,
  delayMs: number,
  reason: string,
): Promise<void> {
  const texts = [pg.escapeLiteral(stream), String(Math.trunc(delayMs)), pg.escapeLiteral(reason)];
  await pool.query(`select tollbook.postpone_payout(${texts.join(', ')})`);
}

/** Ends a payout: done, or, with a reason, failed for good. */
export async function endPayout(pool: pg.Pool, stream: string, failure?: string): Promise<void> {
  const reason = failure === undefined ? 'null' : pg.escapeLiteral(failure);
  await pool.query(`select tollbook.end_payout(${pg.escapeLiteral(stream)}, ${reason})`);
}

/** Payouts that failed so far, or for good, oldest first. */
export async function listTroubledPayouts(pool: pg.Pool, limit: number): Promise<OpenPayout[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.payout')
    .select(['stream', 'status', 'attempts', 'last_reason', 'created_at as since'])
    .where('attempts', '>', 0)
    .orderBy('created_at')
    .limit(limit)
    .execute();
  return rows.map(({ last_reason, ...spend }) => ({ ...spend, reason: last_reason ?? undefined }));
}

/** A spend whose completion is to start before the spend lands. */
export interface ExposureRequest {
  readonly stream: string;
  readonly scope: string;
  readonly commitment: string;
  readonly nonce: bigint;
  readonly amount: bigint;
  /** The largest exposure to one account. */
  readonly limit: bigint;
  /** The account on its chain. */
  readonly nextNonce: bigint;
  readonly balance: bigint;
}

/** Whether it may; then it counts as exposure until it is ended. Serialised per account, over all processes. */
export async function exposeSpend(pool: pg.Pool, asked: ExposureRequest): Promise<boolean> {
  const { nonce, amount, limit, nextNonce, balance } = asked;
  const texts = [asked.stream, asked.scope, asked.commitment].map((text) => pg.escapeLiteral(text));
  const { rows } = await pool.query<{ may: boolean }>(
    `select tollbook.expose_spend(${[...texts, nonce, amount, limit, nextNonce, balance].join(', ')}) as may`,
  );
  return rows[0]?.may ?? false;
}

/** Ends a spend's exposure; where the spend failed, its account gets no exposure again. */
export async function endExposure(pool: pg.Pool, stream: string, hasFailed: boolean): Promise<void> {
  await pool.query(`select tollbook.end_exposure(${pg.escapeLiteral(stream)}, ${hasFailed})`);
}

/** Deletes up to `max` exposures that were not used for a day; returns how many. */
export async function pruneExposures(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ pruned: number }>(
    `select tollbook.prune_exposures(${Math.trunc(max)}) as pruned`,
  );
  return rows[0]?.pruned ?? 0;
}
