import type pg from 'pg';
import type { Hex } from '../../base/values/primitives.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** Names a callback: a payment's stream, and the hash of the request that it pays for. */
export interface CallbackName {
  readonly stream: string;
  readonly binding: Hex;
}

/** A callback that this process is to send within a minute: then another one may take it. */
export interface TakenCallback extends CallbackName {
  readonly url: string;
  /** Of the newest event that may be the end of the call. */
  readonly seq: number;
  /** This one included. */
  readonly tries: number;
  /** Since that event was seen. */
  readonly ageSecs: number;
  /** Whose it is. */
  readonly payer: string;
}

const bytesOf = (hex: Hex): Buffer => Buffer.from(hex.slice(2), 'hex');

/** Keeps a callback, before its payment is started. */
export function putCallback(
  pool: pg.Pool,
  { stream, binding }: CallbackName,
  url: string,
  payer: string,
): Promise<void> {
  return callFunction(pool, 'put_callback', [stream, bytesOf(binding), url, payer]);
}

/** Reads up to `max` events that no process has read yet, and makes the callbacks due that they concern. Returns how many it read. */
export function collectCallbacks(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'collect_callbacks', [max]);
}

/**
 * Takes up to `max` callbacks that are due, of each payer in turn. Each is to be ended or returned.
 * @param busy payers of whom none is taken
 */
export async function takeCallbacks(
  pool: pg.Pool,
  max: number,
  busy: readonly string[] = [],
): Promise<TakenCallback[]> {
  const rows = await callTableFunction(pool, 'take_callbacks', [max, busy]);
  return rows.map(({ stream, binding, url, seq, tries, age_secs: ageSecs, payer }) => ({
    stream,
    binding: `0x${binding.toString('hex')}`,
    url,
    seq,
    tries,
    ageSecs,
    payer,
  }));
}

/**
 * The client needs no message about events up to `seq` any more.
 * @param outcome undefined if there was nothing to tell
 */
export function endCallback(
  pool: pg.Pool,
  { stream, binding }: CallbackName,
  seq: number,
  outcome?: 'delivered' | 'given_up',
  failure?: string,
): Promise<void> {
  return callFunction(pool, 'end_callback', [
    stream,
    bytesOf(binding),
    seq,
    outcome ?? null,
    failure ?? null,
  ]);
}

/** The message was not taken: it is due again after `delayMs`, unless a newer event is due already. */
export function returnCallback(
  pool: pg.Pool,
  { stream, binding }: CallbackName,
  seq: number,
  delayMs: number,
  failure: string,
): Promise<void> {
  return callFunction(pool, 'return_callback', [stream, bytesOf(binding), seq, delayMs, failure]);
}

/** Deletes up to `max` callbacks of payments of these wallets; returns how many. */
export function eraseCallbacks(pool: pg.Pool, payers: readonly string[], max: number): Promise<number> {
  return callFunction(pool, 'erase_callbacks', [payers, max]);
}

/** The outcome of the callback of a request for a quote; undefined if it has no callback. */
export async function findCallback(db: LedgerDatabase, digest: Hex, binding: Hex) {
  const row = await db
    .selectFrom('tollbook.callback')
    .select(['due_at', 'tries', 'outcome', 'outcome_at', 'last_failure'])
    .where('stream', '=', bytesOf(digest))
    .where('binding', '=', bytesOf(binding))
    .executeTakeFirst();
  if (!row) return undefined;
  return {
    /** `waiting`: for the end of the call. */
    state: row.due_at ? ('due' as const) : (row.outcome ?? ('waiting' as const)),
    tries: row.tries,
    /** Of the last try, if it failed: a machine-readable code. */
    lastFailure: row.last_failure ?? undefined,
    /** When the last message was delivered or given up. */
    at: row.outcome_at ?? undefined,
  };
}
