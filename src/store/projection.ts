import pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';

/** A payment as it is stored for reading. Times are RFC 3339, amounts decimal strings. */
export interface PaymentRow {
  readonly seq: number;
  readonly quote_digest: string;
  readonly at: string;
  readonly service_id: number;
  readonly job_index: number;
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
  /** Why its money is owed back, and since when; null where it is not. */
  readonly refund_due: string | null;
  readonly refund_due_since: string | null;
  /** The last event that it is made of. */
  readonly last_seq: number;
}

export interface CallRow {
  readonly call_id: number;
  /** Of the payment that bought it. */
  readonly seq: number;
  readonly quote_digest: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly status: string;
  readonly attempts: number;
  readonly enqueued_at: string;
  readonly ended_at: string | null;
}

/** How far a generation of the read models has come. */
export interface Projection {
  readonly generation: number;
  readonly seq: number;
}

/**
 * One generation, or the one that is read; credit has a place of its own there.
 * @throws where there is no such generation any more
 */
export async function readProjection(
  pool: pg.Pool,
  generation?: number,
  place: 'seq' | 'credit_seq' = 'seq',
): Promise<Projection> {
  const { rows } = await pool.query<Projection>(
    `select generation, ${place} as seq from tollbook.projection
     where case when $1::int is null then is_active else generation = $1 end`,
    [generation ?? null],
  );
  const row = rows[0];
  if (!row)
    throw new Error(`there is no generation ${generation ?? ''} of the read models: it was swept away`);
  return row;
}

/** The streams that the next events touch, among events of some types, and where those events end. */
export async function readTouched(
  pool: pg.Pool,
  afterSeq: number,
  max: number,
  types: readonly string[],
): Promise<{ readonly last: number; readonly streams: readonly string[] } | undefined> {
  const { rows } = await pool.query<{ last: number | null; streams: string[] | null }>({
    name: 'read_touched',
    text: `select max(seq) as last, array_agg(distinct stream) filter (where type = any ($3)) as streams
      from (select seq, stream, type from tollbook.event
        where lane_id = 1 and seq > $1 order by seq limit $2) read`,
    values: [afterSeq, max, types],
  });
  const row = rows[0];
  return row?.last ? { last: row.last, streams: row.streams ?? [] } : undefined;
}

/** Whole streams up to a place in the ledger. */
export async function readStreamsUpTo(
  pool: pg.Pool,
  streams: readonly string[],
  last: number,
): Promise<RecordedEvent[][]> {
  if (streams.length === 0) return [];
  const { rows } = await pool.query<{ stream: string; leaf: string }>({
    name: 'read_streams_up_to',
    // as text: half the bytes of a bytea on the wire
    text: `select event.stream, convert_from(event.leaf, 'UTF8') as leaf from unnest($1::text[]) as asked(stream)
      cross join lateral (
        select event.stream, event.version, event.leaf from tollbook.event
        where event.stream = asked.stream and event.seq <= $2 order by event.version offset 0) event`,
    values: [streams, last],
  });
  const byStream = Map.groupBy(rows, ({ stream }) => stream);
  return [...byStream.values()].map((group) => group.map(({ leaf }) => decodeLeaf(leaf)));
}

/** Writes rows and moves the generation, in one transaction. False where it stood elsewhere: nothing was written. */
export async function applyProjection(
  pool: pg.Pool,
  { generation, seq }: Projection,
  last: number,
  rows: { readonly payments: readonly PaymentRow[]; readonly calls: readonly CallRow[] },
): Promise<boolean> {
  const [payments, calls] = [rows.payments, rows.calls].map((list) => pg.escapeLiteral(JSON.stringify(list)));
  const { rows: answers } = await pool.query<{ done: boolean }>(
    `select tollbook.apply_projection(${generation}, ${seq}, ${last}, ${payments}, ${calls}) as done`,
  );
  return answers[0]?.done ?? false;
}

export async function beginProjection(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ generation: number }>(
    'select tollbook.begin_projection() as generation',
  );
  const generation = rows[0]?.generation;
  if (generation === undefined) throw new Error('no generation was begun');
  return generation;
}

/** The generation that was replaced; undefined while the new one is behind. */
export async function activateProjection(pool: pg.Pool, generation: number): Promise<number | undefined> {
  const { rows } = await pool.query<{ replaced: number | null }>(
    `select tollbook.activate_projection(${generation}) as replaced`,
  );
  return rows[0]?.replaced ?? undefined;
}

/** Drops a piece of what nobody reads any more; returns how many rows went. */
export async function pruneProjections(pool: pg.Pool, replaced: number, max: number): Promise<number> {
  const { rows } = await pool.query<{ swept: number }>(
    `select tollbook.prune_projections(${replaced}, ${max}) as swept`,
  );
  return rows[0]?.swept ?? 0;
}
