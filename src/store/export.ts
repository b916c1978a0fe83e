import type pg from 'pg';
import { poll } from '../runtime/poll.ts';

/** Where an export ends, and what the ledger itself counted there; read in one statement. */
export interface ExportEnd {
  /** What the lane says. */
  readonly seq: number;
  /** The last event that is there. */
  readonly last: number;
  /** The lane's own counters, by type of event. */
  readonly counters: Readonly<Record<string, number>>;
}

export async function readExportEnd(pool: pg.Pool): Promise<ExportEnd> {
  const { rows } = await pool.query<ExportEnd>(
    `select lane.seq, (select coalesce(max(event.seq), 0) from tollbook.event where event.lane_id = 1) as last,
      (select coalesce(json_object_agg(type, count order by type), '{}') from tollbook.lane_counter
        where lane_counter.lane_id = 1) as counters
      from tollbook.lane where lane_id = 1`,
  );
  const row = rows[0];
  if (!row) throw new Error('the ledger has no lane');
  return row;
}

const pauseMs = 20;
const longestWaitMs = 30_000;

/**
 * A moment that no event can still come before, in Unix milliseconds of the database's clock. An append reads the clock once
 * its transaction has a number: of those that read it before this moment all have a lower one than is drawn after it, and are
 * waited for. A replica draws none: there it is the time of the last event, since a lane's times never run backwards.
 */
export async function readPassedMoment(pool: pg.Pool): Promise<number> {
  const clock = await pool.query<{ ms: number; replica_ms: number | null }>(
    `select floor(extract(epoch from tollbook.clock()) * 1000)::float8 as ms,
      case when pg_is_in_recovery() then floor(extract(epoch from at) * 1000)::float8 end as replica_ms
      from tollbook.lane where lane_id = 1`,
  );
  const { ms = 0, replica_ms } = clock.rows[0] ?? {};
  if (replica_ms != null) return replica_ms;
  const drawn = await pool.query<{ own: string }>('select pg_current_xact_id()::text as own');
  const hasPassed = await poll(
    async () => {
      const { rows } = await pool.query<{ has_passed: boolean }>(
        `select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as has_passed`,
        [drawn.rows[0]?.own],
      );
      return rows[0]?.has_passed === true;
    },
    { until: (isOver) => isOver, timeoutMs: longestWaitMs, pauses: { firstMs: pauseMs, longestMs: pauseMs } },
  );
  if (hasPassed) return ms;
  throw new Error(
    'a transaction has been open on this database for too long: nobody can tell yet what is complete',
  );
}

/** A page of leaves, a line each; `last` is where the next page goes on. Undefined where there is none left. */
export async function readLeafLines(
  pool: pg.Pool,
  afterSeq: number,
  end: number,
  limit: number,
): Promise<{ readonly lines: Buffer; readonly last: number } | undefined> {
  const { rows } = await pool.query<{ lines: Buffer | null; last: number }>({
    name: 'read_leaf_lines',
    text: `select string_agg(leaf || '\\x0a'::bytea, ''::bytea order by seq) as lines, max(seq) as last
      from (select seq, leaf from tollbook.event
        where lane_id = 1 and seq > $1 and seq <= $2 order by seq limit $3) read`,
    values: [afterSeq, end, limit],
  });
  const row = rows[0];
  return row?.lines ? { lines: row.lines, last: row.last } : undefined;
}

/** An event as its columns say it, for whoever compares them with the leaf. */
export interface StoredEvent {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  readonly at: Date;
  readonly leaf: Buffer;
}

export async function readStoredEvents(
  pool: pg.Pool,
  afterSeq: number,
  end: number,
  limit: number,
): Promise<StoredEvent[]> {
  const { rows } = await pool.query<StoredEvent>({
    name: 'read_stored_events',
    text: `select seq, stream, version, type, at, leaf from tollbook.event
      where lane_id = 1 and seq > $1 and seq <= $2 order by seq limit $3`,
    values: [afterSeq, end, limit],
  });
  return rows;
}
