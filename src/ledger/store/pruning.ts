import type pg from 'pg';
import type { PrunedKind } from '../rules/retention-events.ts';
import { callFunction, callTableFunction } from './functions.ts';

/** Kinds of rows; mails are files. */
export type PrunedRows = Exclude<PrunedKind, 'mails'>;

/** How many of a kind a round has deleted, all older than `before`. */
export interface PruneSum {
  readonly kind: PrunedKind;
  readonly count: number;
  readonly before: Date;
}

/** Deletes up to `max` rows of a kind that are older than `lifeSecs`, in one short transaction; returns how many. */
export function pruneRows(pool: pg.Pool, kind: PrunedRows, lifeSecs: number, max: number): Promise<number> {
  return callFunction(pool, 'prune', [kind, lifeSecs, max]);
}

/** Deletes up to `max` rows of each kind that gateways need for a short time themselves; returns how many in all. */
export function pruneShortLived(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'prune_short_lived', [max]);
}

/** Adds files to the sums of the round. */
export function notePruned(pool: pg.Pool, kind: PrunedKind, count: number, lifeSecs: number): Promise<void> {
  return callFunction(pool, 'note_pruned', [kind, count, lifeSecs]);
}

/** True if a round is due: for one gateway, then for none until `everySecs` have passed. */
export function beginPruneRound(pool: pg.Pool, everySecs: number): Promise<boolean> {
  return callFunction(pool, 'begin_prune_round', [everySecs * 1_000]);
}

/** Ends the round; the sums by round of those that are not on record yet. */
export async function endPruneRound(pool: pg.Pool): Promise<ReadonlyMap<number, readonly PruneSum[]>> {
  const sums = new Map<number, PruneSum[]>();
  for (const { round, kind, count, before } of await callTableFunction(pool, 'end_prune_round', [])) {
    // the database has no other kinds: those of `pruneRows` and `notePruned`
    const sum = { kind: kind as PrunedKind, count, before };
    sums.set(round, [...(sums.get(round) ?? []), sum]);
  }
  return sums;
}

/** The sums of a round are on record. */
export function forgetPruneRound(pool: pg.Pool, round: number): Promise<void> {
  return callFunction(pool, 'forget_prune_round', [round]);
}
