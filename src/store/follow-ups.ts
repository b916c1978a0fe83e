import pg from 'pg';
import type { FollowUpTopic as EventFollowUp } from '../domain/events/descriptor.ts';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import type { LedgerDatabase } from './database.ts';

/**
 * What is still wanted for an event: `confirm` a settlement until it is final, `resolve` one that does not stand while a
 * runner has its call, `alert` the operator, `reverse_top_up` credit that it has bought. The statements here are simple-protocol
 * messages: they lock rows, and a client that vanishes must not keep them.
 */
export type FollowUpTopic = Exclude<EventFollowUp, 'pay_out'>;

/** Something to do about one event. */
export interface FollowUp {
  /** Of the event. */
  readonly seq: number;
  readonly stream: string;
  /** This one included. */
  readonly tries: number;
  /** How far the chain was when a settlement was first looked for in vain. */
  readonly firstSearchBlock: bigint | undefined;
  readonly ageSecs: number;
}

/** A settlement whose block is final, unless another has taken its place. */
export interface FinalSettlement {
  readonly seq: number;
  readonly stream: string;
  readonly blockNumber: bigint;
  readonly blockHash: string;
}

/** Looks through up to `max` events that no process has looked through. Returns how many that were. */
export async function collectFollowUps(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ read: number }>(
    `select tollbook.collect_follow_ups(${Math.trunc(max)}) as read`,
  );
  return rows[0]?.read ?? 0;
}

/** Takes up to `max` settlements of a network that stand in a block up to `finalized`. */
export async function takeFinalSettlements(
  pool: pg.Pool,
  network: string,
  finalized: bigint,
  max: number,
): Promise<FinalSettlement[]> {
  const { rows } = await pool.query<{
    seq: number;
    stream: string;
    block_number: string;
    block_hash: string;
  }>(
    `select * from tollbook.take_final_settlements(${pg.escapeLiteral(network)}, ${finalized}, ${Math.trunc(max)})`,
  );
  return rows.map(({ seq, stream, block_number, block_hash }) => ({
    seq,
    stream,
    blockNumber: BigInt(block_number),
    blockHash: block_hash,
  }));
}

/** Takes up to `max` follow-ups of a topic that are due, of one network or of all; they come back until they are ended. */
export async function takeFollowUps(
  pool: pg.Pool,
  topic: FollowUpTopic,
  network: string | undefined,
  max: number,
): Promise<FollowUp[]> {
  const of = network === undefined ? 'null' : pg.escapeLiteral(network);
  const { rows } = await pool.query<{
    seq: number;
    stream: string;
    tries: number;
    first_search_block: string | null;
    age_secs: number;
  }>(`select * from tollbook.take_follow_ups(${pg.escapeLiteral(topic)}, ${of}, ${Math.trunc(max)})`);
  return rows.map(({ seq, stream, tries, first_search_block, age_secs }) => ({
    seq,
    stream,
    tries,
    firstSearchBlock: first_search_block === null ? undefined : BigInt(first_search_block),
    ageSecs: age_secs,
  }));
}

export async function noteFirstSearchBlock(pool: pg.Pool, seq: number, block: bigint): Promise<void> {
  await pool.query(`select tollbook.note_first_search_block(${Math.trunc(seq)}, ${block})`);
}

/** Done with: nobody needs to look at these again. */
export async function endFollowUps(
  pool: pg.Pool,
  topic: FollowUpTopic,
  seqs: readonly number[],
): Promise<void> {
  if (seqs.length === 0) return;
  const list = seqs.map(Math.trunc).join(',');
  await pool.query(`select tollbook.end_follow_ups(${pg.escapeLiteral(topic)}, '{${list}}')`);
}

/** Gives up what is a month old. Returns how many went. */
export async function pruneFollowUps(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ swept: number }>(
    `select tollbook.prune_follow_ups(${Math.trunc(max)}) as swept`,
  );
  return rows[0]?.swept ?? 0;
}

/** Settlements that are open while their calls are with runners, oldest first. */
export async function listUnresolved(db: LedgerDatabase, limit: number) {
  return db
    .selectFrom('tollbook.follow_up')
    .select(['seq', 'stream', 'created_at'])
    .where('topic', '=', 'resolve')
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/** One event by its place; undefined where there is none. */
export async function readEvent(db: LedgerDatabase, seq: number): Promise<RecordedEvent | undefined> {
  const row = await db
    .selectFrom('tollbook.event')
    .select('leaf')
    .where('lane_id', '=', 1)
    .where('seq', '=', seq)
    .executeTakeFirst();
  return row && decodeLeaf(row.leaf);
}
