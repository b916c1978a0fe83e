import { sql } from 'kysely';
import type pg from 'pg';
import { poll } from '../../base/runtime/poll.ts';
import { type LedgerDatabase, queriesOn } from './database.ts';
import { leafBytes } from './expressions.ts';

/** Somebody removed or changed a row without which the database is not a ledger. */
export class DamagedLedgerError extends Error {}

/** The end of an export, and the ledger's own counts there; read in one statement. */
export interface ExportEnd {
  /** The lane's last sequence number. */
  readonly seq: number;
  /** The last event that exists. */
  readonly last: number;
  /** The lane's own counters, by type of event. */
  readonly counters: Readonly<Record<string, number>>;
}

export async function readExportEnd(pool: pg.Pool): Promise<ExportEnd> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.lane as lane')
    .select('lane.seq')
    .select((lane) => [
      lane
        .selectFrom('tollbook.event')
        .select(({ fn }) => fn.coalesce(fn.max('seq'), sql<number>`0::bigint`).as('last'))
        .where('lane_id', '=', 1)
        .$asScalar()
        .$notNull()
        .as('last'),
      lane
        .selectFrom(
          lane
            .selectFrom('tollbook.lane_counter')
            .select(({ fn }) => ['type', fn.sum<number>('count').as('count')])
            .where('lane_id', '=', 1)
            .groupBy('type')
            .as('counter'),
        )
        .select(({ ref }) =>
          sql<
            Record<string, number>
          >`coalesce(json_object_agg(${ref('type')}, ${ref('count')} order by ${ref('type')}), '{}')`.as(
            'counters',
          ),
        )
        .$asScalar()
        .$notNull()
        .as('counters'),
    ])
    .where('lane.lane_id', '=', 1)
    .executeTakeFirst();
  if (!row) throw new DamagedLedgerError('lane: the row of the ledger is missing');
  return row;
}

const pauseMs = 20;
const longestWaitMs = 30_000;

/**
 * A moment in Unix milliseconds of the database's clock; every event before it is visible. An append reads the clock after
 * its transaction got an id, so every append that read it before this moment has a lower id than the one drawn after it,
 * and this function waits for all of those. A replica draws no ids: there the moment is the time of the last event, because
 * a lane's times never go back.
 */
export async function readPassedMoment(pool: pg.Pool): Promise<number> {
  const db = queriesOn(pool);
  const clock = await db
    .selectFrom('tollbook.lane')
    .select(({ ref }) => [
      sql<number>`floor(extract(epoch from tollbook.clock()) * 1000)::float8`.as('ms'),
      sql<
        number | null
      >`case when pg_is_in_recovery() then floor(extract(epoch from ${ref('at')}) * 1000)::float8 end`.as(
        'replica_ms',
      ),
    ])
    .where('lane_id', '=', 1)
    .executeTakeFirst();
  const { ms = 0, replica_ms } = clock ?? {};
  if (replica_ms != null) return replica_ms;
  const { own } = await db
    .selectNoFrom(sql<string>`pg_current_xact_id()::text`.as('own'))
    .executeTakeFirstOrThrow();
  const hasPassed = await poll(
    async () => {
      const row = await db
        .selectNoFrom(sql<boolean>`pg_snapshot_xmin(pg_current_snapshot()) >= ${own}::xid8`.as('has_passed'))
        .executeTakeFirstOrThrow();
      return row.has_passed;
    },
    { until: (isOver) => isOver, timeoutMs: longestWaitMs, pauses: { firstMs: pauseMs, longestMs: pauseMs } },
  );
  if (hasPassed) return ms;
  throw new Error(
    `A transaction has been open on this database for ${longestWaitMs / 1000} s, so the export cannot be known to be complete. Nothing was exported; end that transaction (see pg_stat_activity) and try again`,
  );
}

/** A part of a ledger: the events after one, up to another. */
export interface LedgerPart {
  readonly after: number;
  readonly last: number;
}

/** The last event that was recorded before a moment, in Unix milliseconds; 0 if none was. */
export async function readLastBefore(client: Pick<pg.Pool, 'query'>, ms: number): Promise<number> {
  const { rows } = await client.query<{ seq: number }>(
    'select tollbook.last_event_before(to_timestamp($1::float8 / 1000)) as seq',
    [ms],
  );
  return rows[0]?.seq ?? 0;
}

/** The number of events after one up to another. */
export async function countEvents(pool: pg.Pool, afterSeq: number, lastSeq: number): Promise<number> {
  const { count } = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('seq', '<=', lastSeq)
    .executeTakeFirstOrThrow();
  return count;
}

/** A page of leaves, a line each; the next page starts after `last`. Undefined after the last page. */
export async function readLeafLines(
  pool: pg.Pool,
  afterSeq: number,
  end: number,
  limit: number,
): Promise<{ readonly lines: Buffer; readonly last: number } | undefined> {
  const db = queriesOn(pool);
  const row = await db
    .selectFrom(
      eventsBetween(db, afterSeq, end, limit)
        .select(['seq', leafBytes.as('leaf')])
        .as('read'),
    )
    .select(({ fn, ref }) => [
      sql<Buffer | null>`string_agg(${ref('leaf')} || '\\x0a'::bytea, ''::bytea order by seq)`.as('lines'),
      fn.max('seq').as('last'),
    ])
    .executeTakeFirst();
  return row?.lines ? { lines: row.lines, last: row.last } : undefined;
}

/** A page of leaves, with their places, and whether the columns of time and stream are the only ones of this leaf. */
export async function readPlacedLeaves(
  pool: pg.Pool,
  afterSeq: number,
  end: number,
  limit: number,
): Promise<{ readonly seq: number; readonly leaf: Buffer; readonly is_as_written: boolean }[]> {
  return eventsBetween(queriesOn(pool), afterSeq, end, limit)
    .select(({ ref }) => [
      'seq',
      leafBytes.as('leaf'),
      // a leaf does not tell the years before Christ from those after
      sql<boolean>`${ref('at')} = date_trunc('milliseconds', ${ref('at')}) and extract(year from ${ref('at')}) > 0
        and ${ref('stream')} = tollbook.stream_key(tollbook.stream_name(${ref('stream')}))`.as(
        'is_as_written',
      ),
    ])
    .execute();
}

function eventsBetween(db: LedgerDatabase, afterSeq: number, end: number, limit: number) {
  return db
    .selectFrom('tollbook.event')
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('seq', '<=', end)
    .orderBy('seq')
    .limit(limit);
}
