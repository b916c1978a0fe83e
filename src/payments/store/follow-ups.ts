import type pg from 'pg';
import type { FollowUpTopic as EventFollowUp } from '../../ledger/rules/descriptor.ts';
import type { RecordedEvent } from '../../ledger/rules/event.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { quoteOf } from '../../ledger/store/expressions.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';
import { decoded, leavesIn } from '../../ledger/store/streams.ts';

/**
 * What an event still needs: `confirm` a settlement until it is final, `resolve` one that was disproved while a runner has its
 * call, `alert` the operator, `reverse_top_up` the credit that it bought. `unreadable`: tell the operator that a worker could
 * not read the event and passed over it.
 */
export type FollowUpTopic = Exclude<EventFollowUp, 'pay_out'> | 'unreadable';

/** Reads up to `max` events that no process has read yet and inserts the follow-ups they need. Returns how many it read. */
export function collectFollowUps(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'collect_follow_ups', [max]);
}

/** A settlement whose block is final, unless a reorg replaced that block. */
export type FinalSettlement = Awaited<ReturnType<typeof takeFinalSettlements>>[number];

/** Takes up to `max` settlements of a network whose block is `finalized` or earlier. */
export async function takeFinalSettlements(pool: pg.Pool, network: string, finalized: bigint, max: number) {
  const rows = await callTableFunction(pool, 'take_final_settlements', [network, String(finalized), max]);
  return rows.map(({ seq, stream, block_number, block_hash }) => ({
    seq,
    stream,
    blockNumber: BigInt(block_number),
    blockHash: block_hash,
  }));
}

/** A task of a worker because of one event. */
export type FollowUp = Awaited<ReturnType<typeof takeFollowUps>>[number];

/** Takes up to `max` follow-ups of a topic that are due, of one network or of all. They become due again until they are ended. */
export async function takeFollowUps(
  pool: pg.Pool,
  topic: FollowUpTopic,
  network: string | undefined,
  max: number,
) {
  const rows = await callTableFunction(pool, 'take_follow_ups', [topic, network ?? null, max]);
  return rows.map(({ seq, stream, tries, first_search_block, age_secs }) => ({
    seq,
    stream,
    /** This one included. */
    tries,
    /** The chain's head when the settlement was first searched for and not found. */
    firstSearchBlock: first_search_block === null ? undefined : BigInt(first_search_block),
    ageSecs: age_secs,
  }));
}

/** Records the chain's head when a settlement was first searched for and not found. */
export function noteFirstSearchBlock(pool: pg.Pool, seq: number, block: bigint): Promise<void> {
  return callFunction(pool, 'note_first_search_block', [seq, String(block)]);
}

/** Records that a worker could not read an event, so that the operator gets an alert. */
export function noteUnreadable(pool: pg.Pool, seq: number): Promise<void> {
  return callFunction(pool, 'note_unreadable', [seq]);
}

/** Deletes follow-ups that are completed. */
export async function endFollowUps(
  pool: pg.Pool,
  topic: FollowUpTopic,
  seqs: readonly number[],
): Promise<void> {
  if (seqs.length > 0) await callFunction(pool, 'end_follow_ups', [topic, seqs.map(String)]);
}

/** Settlements that are not resolved while runners have their calls, oldest first. */
export async function listUnresolved(db: LedgerDatabase, limit: number) {
  return db
    .selectFrom('tollbook.follow_up')
    .select(({ ref }) => ['seq', 'created_at', quoteOf(ref('tollbook.follow_up.seq')).as('stream')])
    .where('topic', '=', 'resolve')
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/**
 * The event with this sequence number; undefined if there is none.
 * @throws as decodeLeaf does if it cannot be read
 */
export async function readEvent(db: LedgerDatabase, seq: number): Promise<RecordedEvent | undefined> {
  const [event] = await decoded(leavesIn(db).where('lane_id', '=', 1).where('seq', '=', seq));
  return event;
}
