import type pg from 'pg';
import { eventDescriptors, eventTypes } from '../../ledger/rules/event.ts';
import type { LedgerPart } from '../../ledger/store/export.ts';
import type { RowSnapshot } from '../../ledger/store/stored-rows.ts';

/** The types of single events: those that count until others replace them, and those that move money once. All others are of payments. */
const standing = ['operator_transfer_recorded', 'operator_transfer_reversed', 'operator_break_explained'];
const moving = ['operator_sweep_recorded', 'spend_paid_out'];

/** The types of events that a reconciliation folds. */
export const reconciledTypes = eventTypes.filter(
  (type) => eventDescriptors[type].reconciliation === 'needed',
);
const paymentTypes = reconciledTypes.filter((type) => ![...standing, ...moving].includes(type));

/** After a period, what changes what is said of a payment in it. */
const changing = [
  'refunded',
  'settlement_failed',
  'settlement_disproved',
  'settlement_reorged',
  'payment_recovered',
  'redelivery_requested',
  'enqueued_again',
  'operator_requeued',
];

/** The types that are looked for outside of a period: those of the index `event_rare`. */
export const rareTypes = [...changing, ...moving, ...standing];

const listed = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');

/** The time of an event, RFC 3339; undefined if there is no such event. */
export async function timeOf({ client }: RowSnapshot, seq: number): Promise<string | undefined> {
  const { rows } = await client.query<{ at: Date }>(
    'select at from tollbook.event where lane_id = 1 and seq = $1',
    [seq],
  );
  return rows[0]?.at.toISOString();
}

/** The events of one stream outside of a part. */
export interface OutsideEvents {
  readonly stream: string;
  /** The versions of its first and last event in the part; null if it has none there. */
  readonly lowest: number | null;
  readonly highest: number | null;
  /** In the order of their versions. */
  readonly seqs: readonly number[];
  readonly versions: readonly number[];
}

/**
 * Of payments that matter to a part, the events outside of it: of those with an event in it, of those that are open, or whose refund is
 * due, of those that settled late, and of those that something befell afterwards.
 * @param size the events after it are left out
 */
export async function readOutside(
  { client, generation }: RowSnapshot,
  { after, last }: LedgerPart,
  size: number,
): Promise<OutsideEvents[]> {
  const { rows } = await client.query<OutsideEvents>(
    `with touched as materialized (
        select stream, min(version) as lowest, max(version) as highest from tollbook.event
        where lane_id = 1 and seq > $1 and seq <= $2 group by stream having bool_or(type in (${listed(paymentTypes)}))
      ), started as (
        select seq from tollbook.payment where generation = $4 and seq <= $1 and refund_due is not null
        union select seq from tollbook.payment
        where generation = $4 and seq <= $1 and state in ('authorized', 'settling', 'settlement_unknown')
        union select seq from tollbook.payment
        where generation = $4 and settled_at - at > interval '1 day'
          and settled_at >= (select at from tollbook.event where lane_id = 1 and seq = $2)
        union select seq from tollbook.follow_up where topic in ('confirm', 'resolve')
      ), other as (
        select event.stream from started join tollbook.event on event.lane_id = 1 and event.seq = started.seq
        union select event.stream from tollbook.event
        where event.lane_id = 1 and event.type in (${listed(changing)}) and event.seq > $2 and (event.type = 'payment_recovered'
          or exists (select from tollbook.event first where first.stream = event.stream and first.version = 1 and first.seq <= $2))
      ), wanted as (
        select touched.* from touched where lowest > 1
          or exists (select from tollbook.event more where more.stream = touched.stream and more.version > touched.highest)
        union all select other.stream, null, null from other
        where not exists (select from touched where touched.stream = other.stream)
      )
      select tollbook.stream_name(wanted.stream) as stream, lowest, highest, json_agg(event.seq order by event.version) as seqs,
        json_agg(event.version order by event.version) as versions
      from wanted join tollbook.event on event.stream = wanted.stream and event.seq <= $3
        and (lowest is null or event.version < lowest or event.version > highest)
      group by wanted.stream, lowest, highest`,
    [after, last, size, generation],
  );
  return rows;
}

/**
 * Single events outside of a part that matter to it: what operators have said of transfers and breaks, and sweeps and payouts that were
 * recorded later; payouts up to `payoutsUntil`.
 */
export async function readSingles(
  { client }: RowSnapshot,
  { after, last }: LedgerPart,
  size: number,
  payoutsUntil: number,
): Promise<number[]> {
  const { rows } = await client.query<{ seq: number }>(
    `select seq from tollbook.event where lane_id = 1 and type in (${listed(standing)}) and seq <= $3 and (seq <= $1 or seq > $2)
      union select seq from tollbook.event where lane_id = 1 and type = 'operator_sweep_recorded' and seq > $2 and seq <= $3
      union select seq from tollbook.event where lane_id = 1 and type = 'spend_paid_out' and seq > $2 and seq <= least($3, $4)`,
    [after, last, size, payoutsUntil],
  );
  return rows.map(({ seq }) => seq);
}

/** A leaf, and its place in the ledger. */
export interface PlacedLeaf {
  readonly seq: number;
  readonly leaf: Buffer;
}

/** The events of a part of the ledger, in order: all of them, or those of some types. */
export async function readPart(
  pool: pg.Pool,
  { after, last }: LedgerPart,
  types: readonly string[] | undefined,
): Promise<PlacedLeaf[]> {
  const { rows } = await pool.query<PlacedLeaf>({
    name: 'read_part',
    text: `select seq, tollbook.leaf(event) as leaf from tollbook.event
      where lane_id = 1 and seq > $1 and seq <= $2 and ($3::text[] is null or type = any ($3)) order by seq`,
    values: [after, last, types],
  });
  return rows;
}

/** The events at these places, in order. */
export async function readPlaced(pool: pg.Pool, seqs: readonly number[]): Promise<PlacedLeaf[]> {
  const { rows } = await pool.query<PlacedLeaf>({
    name: 'read_placed',
    text: `select seq, tollbook.leaf(event) as leaf from tollbook.event where lane_id = 1 and seq = any ($1::bigint[]) order by seq`,
    values: [seqs],
  });
  return rows;
}
