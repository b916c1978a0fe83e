import type pg from 'pg';
import type { Hex } from '../domain/values/primitives.ts';
import { queriesOn } from './database.ts';
import { callFunction, callTableFunction } from './functions.ts';

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

/** Reads up to `max` events that no process has read yet and inserts a payout for each earned spend. Returns how many it read. */
export function collectPayouts(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'collect_payouts', [max]);
}

/** Takes up to `max` payouts that are due, for `leaseSecs`: the soonest to expire first. */
export async function takePayouts(pool: pg.Pool, max: number, leaseSecs: number): Promise<DuePayout[]> {
  const rows = await callTableFunction(pool, 'take_payouts', [max, leaseSecs]);
  return rows.map(({ transaction, ...payout }) => ({
    ...payout,
    // stored by watchPayout(), from the same type
    transaction: (transaction ?? undefined) as Hex | undefined,
  }));
}

/** Records the payout transaction of a spend; it is checked again after `delayMs`. */
export function watchPayout(pool: pg.Pool, stream: string, transaction: Hex, delayMs: number): Promise<void> {
  return callFunction(pool, 'watch_payout', [stream, transaction, delayMs]);
}

/** Tries a payout again after `delayMs`. */
export function postponePayout(
  pool: pg.Pool,
  stream: string,
  delayMs: number,
  reason: string,
): Promise<void> {
  return callFunction(pool, 'postpone_payout', [stream, delayMs, reason]);
}

/** Ends a payout: done, or, with a reason, failed for good. */
export function endPayout(pool: pg.Pool, stream: string, failure?: string): Promise<void> {
  return callFunction(pool, 'end_payout', [stream, failure ?? null]);
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
