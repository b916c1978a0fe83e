import { sql } from 'kysely';
import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../rules/event.ts';
import type { BookRows } from './book-rows.ts';
import { queriesOn } from './database.ts';
import { callFunction } from './functions.ts';

/** A payment as stored for reading; its quote is the stream of its event. Times are RFC 3339, amounts decimal strings. */
export interface PaymentRow {
  readonly seq: number;
  readonly at: string;
  /** Null for a recovered payment whose payer has not asked for delivery. */
  readonly service_id: number | null;
  readonly job_index: number | null;
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
  readonly amount: string;
  readonly payer: string;
  readonly pay_to: string;
  readonly state: string;
  readonly transaction: string | null;
  readonly block_number: string | null;
  readonly call_id: number | null;
  readonly settled_at: string | null;
  /** The last refund of the payment or of a part of it, and the sum of all. */
  readonly refunded_at: string | null;
  readonly refund_transaction: string | null;
  readonly refunded_amount: string;
  /** Why a refund is due, and since when; null if none is. */
  readonly refund_due: string | null;
  readonly refund_due_since: string | null;
  /** When its refund was started, if that has not ended. */
  readonly refund_started_at: string | null;
  /** When its payer asked for its money, while an operator has that to decide or to pay. */
  readonly refund_requested_at: string | null;
  /** Which service issued its quote; null for a 402 answer, and if the quote is lost. */
  readonly quote_source: string | null;
  /** The last event that is included. */
  readonly last_seq: number;
}

export interface CallRow {
  readonly call_id: number;
  /** The payment's sequence number. */
  readonly seq: number;
  readonly service_id: number;
  readonly job_index: number;
  readonly status: string;
  readonly attempts: number;
  readonly enqueued_at: string;
  readonly ended_at: string | null;
}

/** A call that was taken back with its payment: it has no row any more. */
export interface WithdrawnCall {
  readonly call_id: number;
  readonly status: null;
}

/** A generation of the read models, and its cursor. */
export interface Projection {
  readonly generation: number;
  readonly seq: number;
  /** False: a version without postings or open items began or moved it. It gets none, since those of some events would be missing. */
  readonly hasPostings: boolean;
}

/**
 * One generation, or the active one, with its cursor.
 * @throws if there is no such generation any more
 */
export async function readProjection(pool: pg.Pool, generation?: number): Promise<Projection> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.projection')
    .select(['generation', 'seq', 'has_postings as hasPostings'])
    .where(({ eb, ref }) => (generation === undefined ? ref('is_active') : eb('generation', '=', generation)))
    .executeTakeFirst();
  if (!row) throw new Error(`there is no generation ${generation ?? ''} of the read models: it was pruned`);
  return row;
}

/** The types of events that change each of the read models. */
export interface ProjectedTypes {
  readonly payments: readonly string[];
  readonly credit: readonly string[];
  readonly usage: readonly string[];
  readonly books: readonly string[];
}

/**
 * Of the next `max` events, those that the read models need, in order: every event of a stream whose payments or completions change, and the
 * events that move credit or other money. Undefined if there is no next event.
 */
export async function readNext(
  pool: pg.Pool,
  afterSeq: number,
  max: number,
  types: ProjectedTypes,
): Promise<{ readonly last: number; readonly leaves: readonly string[] } | undefined> {
  // raw SQL: prepared, because every step runs it. `is true` keeps the planner from joining by stream, which would look each
  // stream up: the events of a step lie side by side. As text: half the bytes of a bytea on the wire.
  const { rows } = await pool.query<{ last: number | null; leaf: string | null }>({
    name: 'read_next_projected',
    text: `with next as materialized (
        select seq, stream, type from tollbook.event where lane_id = 1 and seq > $1 order by seq limit $2),
      touched as materialized (select distinct stream from next where type = any ($3::text[]))
      select step.last, event.leaf from (select max(seq) as last from next) step
      left join lateral (
        select tollbook.leaf_text(event) as leaf from tollbook.event
        where lane_id = 1 and seq > $1 and seq <= step.last
          and ((type = any ($4::text[])) or (stream in (select stream from touched)) is true)
        order by seq) event on true`,
    values: [afterSeq, max, [...types.payments, ...types.usage], [...types.credit, ...types.books]],
  });
  const last = rows[0]?.last;
  if (last === undefined || last === null) return undefined;
  return { last, leaves: rows.flatMap(({ leaf }) => leaf ?? []) };
}

/** The place of the next event; undefined if there is none. */
export async function readNextSeq(
  pool: Pick<pg.Pool, 'query'>,
  afterSeq: number,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ seq: number }>(
    'select seq from tollbook.event where lane_id = 1 and seq > $1 order by seq limit 1',
    [afterSeq],
  );
  return rows[0]?.seq;
}

/** Whole streams up to a place in the ledger. */
export async function readStreamsUpTo(
  pool: Pick<pg.Pool, 'query'>,
  streams: readonly string[],
  last: number,
): Promise<RecordedEvent[][]> {
  const read = await readLeavesUpTo(pool, streams, last);
  return read.map((leaves) => leaves.map(decodeLeaf));
}

/** The same as the text of their leaves, which the log hashes. */
export async function readLeavesUpTo(
  pool: Pick<pg.Pool, 'query'>,
  streams: readonly string[],
  last: number,
): Promise<string[][]> {
  if (streams.length === 0) return [];
  // raw SQL: Kysely cannot join an unnest laterally; prepared, because a rebuild runs it for every page
  const { rows } = await pool.query<{ stream: string; leaf: string }>({
    name: 'read_streams_up_to',
    // as text: half the bytes of a bytea on the wire
    text: `select event.stream, event.leaf from unnest($1::text[]) as wanted(stream)
      cross join lateral (
        select wanted.stream, event.version, tollbook.leaf_text(event) as leaf from tollbook.event
        where event.stream = tollbook.stream_key(wanted.stream) and event.seq <= $2 order by event.version offset 0) event`,
    values: [streams, last],
  });
  const byStream = Map.groupBy(rows, ({ stream }) => stream);
  return [...byStream.values()].map((group) => group.map(({ leaf }) => leaf));
}

/** Writes rows and moves the generation's cursor, in one transaction. False, with nothing written, if the cursor is elsewhere. */
export function applyProjection(
  pool: pg.Pool,
  { generation, seq }: Pick<Projection, 'generation' | 'seq'>,
  last: number,
  {
    payments,
    calls,
    accounts,
    usage,
    completions,
    books,
  }: {
    readonly payments: readonly PaymentRow[];
    readonly calls: readonly (CallRow | WithdrawnCall)[];
    /** What to add to each account. */
    readonly accounts: readonly AccountCredit[];
    readonly usage: readonly UsageRow[];
    readonly completions: readonly CompletionRow[];
    /** Null: the generation has no postings and no open items. */
    readonly books: BookRows | null;
  },
): Promise<boolean> {
  const rows = [payments, calls, accounts, usage, completions] as const;
  return callFunction(pool, 'apply_projection', [generation, seq, last, ...rows, books]);
}

/** Whether a generation with postings is being built, or was within the last minute. */
export async function isBuildingPostings(pool: pg.Pool): Promise<boolean> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.projection')
    .select('generation')
    .where('has_postings', '=', true)
    .where('touched_at', '>', sql<Date>`now() - interval '1 minute'`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Starts another generation; returns its number. */
export function beginProjection(pool: pg.Pool): Promise<number> {
  return callFunction(pool, 'begin_projection', []);
}

/** Makes a generation the active one; returns the one that it replaced, undefined while the new one lags. */
export async function activateProjection(pool: pg.Pool, generation: number): Promise<number | undefined> {
  return (await callFunction(pool, 'activate_projection', [generation])) ?? undefined;
}

/** Deletes up to `max` rows of each kind of generations that are not used any more; returns how many. */
export function pruneProjections(pool: pg.Pool, replaced: number, max: number): Promise<number> {
  return callFunction(pool, 'prune_projections', [replaced, max]);
}

/** The movements of one account's credit by some events, or by all of them. Micros. */
export interface AccountCredit {
  readonly account_id: number;
  readonly name: string | null;
  readonly balance: string;
  readonly held: string;
  readonly granted: string;
  readonly topped_up: string;
  /** Without the top-ups that were reversed. */
  readonly captured: string;
  readonly expired: string;
  /** The last event that is included. */
  readonly last_seq: number;
}

/** A completion as the list of an account has it. Tokens and cost are null until it has ended, and where it failed; `cost` in micros. */
export interface CompletionRow {
  readonly account_id: number;
  /** Of its admission. */
  readonly seq: number;
  /** RFC 3339. */
  readonly at: string;
  readonly chat_id: string;
  /** 0 without a key. */
  readonly key_id: number;
  readonly model: string;
  readonly status: 'running' | 'failed' | 'completed' | 'cut' | 'client_left' | 'recovered';
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  /** Of the prompt's. */
  readonly cached_tokens: number | null;
  readonly cost: string | null;
}

/** What the completions of an account used, or how much that changed. Counts as decimal strings; `cost` in micros. */
export interface UsageRow {
  readonly account_id: number;
  /** `YYYY-MM-DD`, UTC: of the admission. */
  readonly day: string;
  readonly model: string;
  /** 0 without a key. */
  readonly key_id: number;
  /** Completions that an upstream began to answer. */
  readonly requests: string;
  /** Completions of which nothing was delivered, and nothing charged. */
  readonly failed: string;
  readonly prompt_tokens: string;
  readonly completion_tokens: string;
  /** Of the prompts'. */
  readonly cached_tokens: string;
  readonly cost: string;
}
