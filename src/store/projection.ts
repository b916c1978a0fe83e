import { sql } from 'kysely';
import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import { queriesOn } from './database.ts';
import { callFunction } from './functions.ts';

/** A payment as it is stored for reading. Times are RFC 3339, amounts decimal strings. */
export interface PaymentRow {
  readonly seq: number;
  readonly quote_digest: string;
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
  readonly refunded_at: string | null;
  readonly refund_transaction: string | null;
  /** Why a refund is due, and since when; null where none is. */
  readonly refund_due: string | null;
  readonly refund_due_since: string | null;
  /** The last event that is included. */
  readonly last_seq: number;
}

export interface CallRow {
  readonly call_id: number;
  /** The payment's sequence number. */
  readonly seq: number;
  readonly quote_digest: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly status: string;
  readonly attempts: number;
  readonly enqueued_at: string;
  readonly ended_at: string | null;
}

/** A generation of the read models, and its cursor. */
export interface Projection {
  readonly generation: number;
  readonly seq: number;
}

/**
 * One generation, or the active one, with its cursor for payments or for credit.
 * @throws where there is no such generation any more
 */
export async function readProjection(
  pool: pg.Pool,
  generation?: number,
  cursor: 'seq' | 'credit_seq' = 'seq',
): Promise<Projection> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.projection')
    .select(['generation', `${cursor} as seq`])
    .where(({ eb, ref }) => (generation === undefined ? ref('is_active') : eb('generation', '=', generation)))
    .executeTakeFirst();
  if (!row) throw new Error(`there is no generation ${generation ?? ''} of the read models: it was pruned`);
  return row;
}

/** The streams of those of the next `max` events that have one of the types, and the last of the `max`. */
export async function readTouched(
  pool: pg.Pool,
  afterSeq: number,
  max: number,
  types: readonly string[],
): Promise<{ readonly last: number; readonly streams: readonly string[] } | undefined> {
  const db = queriesOn(pool);
  const row = await db
    .selectFrom(
      db
        .selectFrom('tollbook.event')
        .select(['seq', 'stream', 'type'])
        .where('lane_id', '=', 1)
        .where('seq', '>', afterSeq)
        .orderBy('seq')
        .limit(max)
        .as('read'),
    )
    .select(({ fn, ref }) => [
      fn.max('seq').as('last'),
      sql<string[] | null>`array_agg(distinct stream) filter (where ${ref('type')} = any (${types}))`.as(
        'streams',
      ),
    ])
    .executeTakeFirst();
  return row?.last ? { last: row.last, streams: row.streams ?? [] } : undefined;
}

/** Whole streams up to a place in the ledger. */
export async function readStreamsUpTo(
  pool: pg.Pool,
  streams: readonly string[],
  last: number,
): Promise<RecordedEvent[][]> {
  if (streams.length === 0) return [];
  // raw SQL: Kysely cannot join an unnest laterally; prepared, because a rebuild runs it for every page
  const { rows } = await pool.query<{ stream: string; leaf: string }>({
    name: 'read_streams_up_to',
    // as text: half the bytes of a bytea on the wire
    text: `select event.stream, convert_from(event.leaf, 'UTF8') as leaf from unnest($1::text[]) as wanted(stream)
      cross join lateral (
        select event.stream, event.version, event.leaf from tollbook.event
        where event.stream = wanted.stream and event.seq <= $2 order by event.version offset 0) event`,
    values: [streams, last],
  });
  const byStream = Map.groupBy(rows, ({ stream }) => stream);
  return [...byStream.values()].map((group) => group.map(({ leaf }) => decodeLeaf(leaf)));
}

/** Writes rows and moves the generation's cursor, in one transaction. False, with nothing written, where the cursor is elsewhere. */
export function applyProjection(
  pool: pg.Pool,
  { generation, seq }: Projection,
  last: number,
  { payments, calls }: { readonly payments: readonly PaymentRow[]; readonly calls: readonly CallRow[] },
): Promise<boolean> {
  return callFunction(pool, 'apply_projection', [generation, seq, last, payments, calls]);
}

/** Starts another generation; returns its number. */
export function beginProjection(pool: pg.Pool): Promise<number> {
  return callFunction(pool, 'begin_projection', []);
}

/** Makes a generation the active one; returns the one that it replaced, undefined while the new one is behind. */
export async function activateProjection(pool: pg.Pool, generation: number): Promise<number | undefined> {
  return (await callFunction(pool, 'activate_projection', [generation])) ?? undefined;
}

/** Deletes up to `max` rows of each kind of generations that are not used any more; returns how many. */
export function pruneProjections(pool: pg.Pool, replaced: number, max: number): Promise<number> {
  return callFunction(pool, 'prune_projections', [replaced, max]);
}
