import type pg from 'pg';
import type { Hex } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** An earned spend that is to be paid out. */
export interface NewPayout {
  /** `spend:` and the id of its completion. */
  readonly stream: string;
  readonly attempts: number;
}

/** A payout whose transaction was sent. It counts once its block is final. */
export interface SentPayout extends NewPayout {
  readonly transaction: Hex;
  /** How often that transaction was checked. */
  readonly checks: number;
}

/** A payout that is not done, or that failed for good. */
export interface OpenPayout extends NewPayout {
  readonly status: 'open' | 'failed';
  /** An error code. */
  readonly reason: string | undefined;
  readonly since: Date;
}

/** Reads up to `max` events that no process has read yet and inserts a payout for each earned spend. Returns how many it read. */
export function collectPayouts(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'collect_payouts', [max]);
}

/** Takes up to `max` due payouts without a transaction, for `leaseSecs`: the soonest to expire first. */
export function takeNewPayouts(pool: pg.Pool, max: number, leaseSecs: number): Promise<NewPayout[]> {
  return callTableFunction(pool, 'take_new_payouts', [max, leaseSecs]);
}

/** Takes up to `max` payouts whose transaction is to be checked, for `leaseSecs`: the longest due first. */
export async function takeSentPayouts(pool: pg.Pool, max: number, leaseSecs: number): Promise<SentPayout[]> {
  const rows = await callTableFunction(pool, 'take_sent_payouts', [max, leaseSecs]);
  // stored by watchPayout(), from the same type
  return rows.map((row) => ({ ...row, transaction: row.transaction as Hex }));
}

/** Records the payout transaction of a spend; it is checked again after `delayMs`. */
export function watchPayout(pool: pg.Pool, stream: string, transaction: Hex, delayMs: number): Promise<void> {
  return callFunction(pool, 'watch_payout', [stream, transaction, delayMs]);
}

/** The payout's transaction will not land: it is due immediately as a new payout. */
export function resendPayout(pool: pg.Pool, stream: string, reason: string): Promise<void> {
  return callFunction(pool, 'resend_payout', [stream, reason]);
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
