import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../rules/event.ts';
import type { Firing } from '../../base/values/triggers/trigger.ts';
import type { Claim } from './lane-command.ts';
import { claimKey } from './claim-key.ts';
import { type LedgerDatabase, queriesOn } from './database.ts';
import { leafText, streamKey, streamName } from './expressions.ts';

export interface StreamReading {
  readonly events: readonly RecordedEvent[];
  /** The database's clock at the moment of reading, in Unix seconds. */
  readonly nowSecs: number;
}

/** A whole stream, with the time of reading. An unknown stream has no events. */
export async function readStream(pool: pg.Pool, stream: string): Promise<StreamReading> {
  // raw SQL: prepared, because every payment waits for it, and planning it costs more than running it
  const { rows } = await pool.query<{ leaf: string | null; now: number }>({
    name: 'read_stream',
    text: `select tollbook.leaf_text(event) as leaf, clock.now
      from (select extract(epoch from tollbook.clock())::float8 as now) clock
      left join tollbook.event on event.stream = tollbook.stream_key($1)
      order by event.version`,
    values: [stream],
  });
  return {
    events: rows.flatMap(({ leaf }) => (leaf === null ? [] : [decodeLeaf(leaf)])),
    nowSecs: Math.floor(rows[0]?.now ?? 0),
  };
}

/** A stream, and the version of the last event of it that a reader has seen. */
export interface SeenStream {
  readonly stream: string;
  readonly version: number;
}

/**
 * Those of the streams that have events after the seen ones, and the ledger's last place. Looks at no stream if the ledger
 * has not grown since `afterSeq`.
 */
export async function readGrownStreams(
  pool: pg.Pool,
  seen: readonly SeenStream[],
  afterSeq: number,
): Promise<{ readonly lastSeq: number; readonly grown: readonly string[] }> {
  // raw SQL: one look-up in the index for each stream, however much was written since; prepared, because it is repeated
  const { rows } = await pool.query<{ last_seq: number; grown: string[] }>({
    name: 'read_grown_streams',
    text: `with last as (select coalesce(max(seq), 0) as seq from tollbook.event where lane_id = 1)
      select last.seq as last_seq, array(
        select seen.stream from unnest($1::text[], $2::int[]) as seen (stream, version)
        where last.seq > $3 and exists (
          select from tollbook.event
          where event.stream = tollbook.stream_key(seen.stream) and event.version > seen.version
        )
      ) as grown
      from last`,
    values: [seen.map(({ stream }) => stream), seen.map(({ version }) => version), afterSeq],
  });
  const [row] = rows;
  return { lastSeq: row?.last_seq ?? 0, grown: row?.grown ?? [] };
}

/** The leaves of events, for conditions and an order. */
export function leavesIn(db: LedgerDatabase) {
  return db.selectFrom('tollbook.event').select(leafText.as('leaf'));
}

/** The events of these leaves. */
export async function decoded(leaves: {
  readonly execute: () => Promise<readonly { readonly leaf: string }[]>;
}): Promise<RecordedEvent[]> {
  return (await leaves.execute()).map(({ leaf }) => decodeLeaf(leaf));
}

/** A stream's last event; undefined for an unknown stream. */
export async function readLastEvent(pool: pg.Pool, stream: string): Promise<RecordedEvent | undefined> {
  const [last] = await readLatestEvents(pool, stream, 1);
  return last;
}

/** The first event of each of these streams that has one. */
export function readFirstEvents(pool: pg.Pool, streams: readonly string[]): Promise<RecordedEvent[]> {
  return decoded(
    leavesIn(queriesOn(pool)).where('version', '=', 1).where('stream', 'in', streams.map(streamKey)),
  );
}

/** Up to `limit` events of a stream, the latest first; those before a version if one is given. */
export function readLatestEvents(
  pool: pg.Pool,
  stream: string,
  limit: number,
  before?: number,
): Promise<RecordedEvent[]> {
  return decoded(
    leavesIn(queriesOn(pool))
      .where('stream', '=', streamKey(stream))
      .$if(before !== undefined, (query) => query.where('version', '<', before ?? 0))
      .orderBy('version', 'desc')
      .limit(limit),
  );
}

/** A stream's leaf bytes with their places, in order, and the database's time in Unix seconds. */
export async function readStreamLeaves(
  pool: pg.Pool,
  stream: string,
): Promise<{ readonly seq: number; readonly leaf: Buffer; readonly now: number }[]> {
  // raw SQL: prepared, because every read of a receipt or a payment's history runs it
  const { rows } = await pool.query<{ seq: number; leaf: Buffer; now: number }>({
    name: 'read_stream_leaves',
    text: `select seq, tollbook.leaf(event) as leaf, extract(epoch from tollbook.clock())::float8 as now
      from tollbook.event where stream = tollbook.stream_key($1) order by version`,
    values: [stream],
  });
  return rows;
}

/** Events of all streams after a place in the ledger, in order. */
export function readEvents(db: LedgerDatabase, afterSeq: number, limit: number): Promise<RecordedEvent[]> {
  const events = leavesIn(db).where('lane_id', '=', 1).where('seq', '>', afterSeq);
  return decoded(events.orderBy('seq').limit(limit));
}

/** The claim of a trigger's firing: it makes one call, for ever. `binding` tells a repetition from another content under the same id. */
export function firingClaim({ kind, name, id }: Firing, binding: string): Claim {
  return { kind: 'trigger', owner: name, scope: kind, key: id, binding };
}

/** The stream that holds a claim, whatever it is bound to; undefined if none does. */
export async function findClaim(pool: pg.Pool, claim: Claim): Promise<string | undefined> {
  const holder = await queriesOn(pool)
    .selectFrom('tollbook.claim')
    .select(({ ref }) => streamName(ref('stream')).as('stream'))
    .where('key', '=', claimKey(claim))
    .executeTakeFirst();
  return holder?.stream;
}
