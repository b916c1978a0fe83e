import { sql } from 'kysely';
import type pg from 'pg';
import type { LogGeneration } from '../../base/values/log/log-generation.ts';
import { hashBytes } from '../../base/values/log/merkle.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { isOfStreams, leafBytes } from '../../ledger/store/expressions.ts';
import { DamagedLedgerError } from '../../ledger/store/export.ts';
import { backlogOf, type Backlog, type BacklogRow } from '../../ledger/store/backlogs.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** A signed head: the tree's size and root, and the checkpoint's text. */
export interface StoredHead {
  readonly size: number;
  readonly root: Buffer;
  readonly note: string;
}

export interface SealedHead extends StoredHead {
  readonly at: Date;
}

/** The state of the log, read in one statement. */
export interface LogTip {
  /** Events in the ledger. */
  readonly seq: number;
  /** Leaves in the tree. */
  readonly size: number;
  readonly edge: Buffer;
  /**
   * The newest head under that origin; undefined if there is none. A head from before the clock was set back is as old
   * as its time is ahead, so that the next one need not wait for the clock.
   */
  readonly head: { readonly size: number; readonly ageMs: number } | undefined;
}

export async function readLogTip(pool: pg.Pool, origin: string): Promise<LogTip> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.lane')
    .innerJoin('tollbook.log_tree as tree', 'tree.lane_id', 'tollbook.lane.lane_id')
    .leftJoinLateral(
      (db) =>
        db
          .selectFrom('tollbook.log_head')
          .select(['size', 'at'])
          .where('origin', '=', origin)
          .orderBy('size', 'desc')
          .limit(1)
          .as('newest'),
      (join) => join.onTrue(),
    )
    .select(['tollbook.lane.seq', 'tree.size', 'tree.edge', 'newest.size as head'])
    .select(({ ref }) =>
      sql<number | null>`abs(extract(epoch from tollbook.clock() - ${ref('newest.at')}))::float8 * 1000`.as(
        'age_ms',
      ),
    )
    .where('tollbook.lane.lane_id', '=', 1)
    .executeTakeFirst();
  if (!row) throw new Error('the ledger has no lane');
  const { seq, size, edge, head, age_ms } = row;
  return { seq, size, edge, head: head === null ? undefined : { size: head, ageMs: age_ms ?? 0 } };
}

/** The events that no checkpoint under that origin covers yet. */
export async function readUnsealed(pool: pg.Pool, origin: string): Promise<Backlog> {
  // raw SQL: one statement, so that its parts belong together; both look-ups are by primary key
  const { rows } = await pool.query<BacklogRow>(
    `select lane.seq - newest.size as count, extract(epoch from tollbook.clock() - event.at)::float8 * 1000 as oldest_ms
     from tollbook.lane
     cross join lateral (select coalesce(max(size), 0) as size from tollbook.log_head where origin = $1) newest
     left join tollbook.event on event.lane_id = lane.lane_id and event.seq = newest.size + 1
     where lane.lane_id = 1`,
    [origin],
  );
  return backlogOf(rows[0]);
}

/** The log's present generation: one more than the ledger was recovered. */
export async function readLogGeneration(pool: pg.Pool): Promise<LogGeneration> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select(({ fn }) => [fn.count<number>('seq').as('recoveries'), fn.max('seq').as('last')])
    .where(isOfStreams('recovery:'))
    .where('type', '=', 'ledger_recovered')
    .executeTakeFirst();
  return { generation: 1 + (row?.recoveries ?? 0), beganAtSeq: row?.last ?? 0 };
}

/**
 * The leaf hashes of `count` events after a place, concatenated. PostgreSQL hashes them: only 32 bytes of each are sent.
 * @throws DamagedLedgerError if one of the events is missing
 */
export async function readLeafHashes(pool: pg.Pool, afterSeq: number, count: number): Promise<Buffer> {
  const db = queriesOn(pool);
  const row = await db
    .selectFrom(
      db
        .selectFrom('tollbook.event')
        .select(['seq', leafBytes.as('leaf')])
        .where('lane_id', '=', 1)
        .where('seq', '>', afterSeq)
        .where('seq', '<=', afterSeq + count)
        .orderBy('seq')
        .limit(count)
        .as('read'),
    )
    .select(({ fn, ref }) => [
      sql<Buffer | null>`string_agg(sha256('\\x00'::bytea || ${ref('leaf')}), ''::bytea order by seq)`.as(
        'hashes',
      ),
      fn.max('seq').as('last'),
    ])
    .executeTakeFirst();
  const hashes = row?.hashes;
  if (hashes?.length !== count * hashBytes || row?.last !== afterSeq + count)
    throw new DamagedLedgerError(`of the events ${afterSeq + 1} to ${afterSeq + count} some are missing`);
  return hashes;
}

export interface LogGrowth extends StoredHead {
  readonly origin: string;
  /** The log's generation in which that origin is its name. */
  readonly generation: number;
  readonly from: number;
}

/**
 * Extends the tree and records its head. A compare-and-swap on the size: false, with nothing changed, if another sealer
 * was first, or the ledger was recovered meanwhile and has another name. Throws if the database computes another root.
 */
export function extendLog(pool: pg.Pool, growth: LogGrowth): Promise<boolean> {
  const { origin, generation, from, size, root, note } = growth;
  return callFunction(pool, 'extend_log', [1, origin, generation, from, size, root, note]);
}

function headsOf(pool: pg.Pool, origin: string) {
  const heads = queriesOn(pool).selectFrom('tollbook.log_head').select(['size', 'root', 'note']);
  return heads.where('origin', '=', origin);
}

/** The newest head under an origin, or the one of a size; undefined if there is none. */
export async function readHead(
  pool: pg.Pool,
  origin: string,
  size?: number,
): Promise<StoredHead | undefined> {
  return headsOf(pool, origin)
    .$if(size !== undefined, (heads) => heads.where('size', '=', size ?? 0))
    .orderBy('size', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** How far an anchor is. */
export interface AnchorState {
  /** Of the newest head that it has received; 0 before the first. */
  readonly size: number;
  /** Events of the newest head that it has not received. */
  readonly behindEvents: number;
  /** How long ago the oldest head was signed that it has not received; 0 if it has all. */
  readonly behindMs: number;
}

/** How far an anchor of a log is, also one that was never due. */
export async function readAnchorState(pool: pg.Pool, origin: string, name: string): Promise<AnchorState> {
  const { size, newest, behind_ms } = await queriesOn(pool)
    .with('known', (db) =>
      db.selectNoFrom(({ fn, selectFrom, val }) =>
        fn
          .coalesce(
            selectFrom('tollbook.log_anchor')
              .select('size')
              .where('origin', '=', origin)
              .where('name', '=', name),
            val(-1),
          )
          .as('size'),
      ),
    )
    .selectFrom('known')
    .select('known.size')
    .select(({ selectFrom }) => [
      selectFrom('tollbook.log_head')
        .select('size')
        .where('origin', '=', origin)
        .orderBy('size', 'desc')
        .limit(1)
        .as('newest'),
      selectFrom('tollbook.log_head as head')
        .select(({ ref }) =>
          sql<number>`extract(epoch from tollbook.clock() - ${ref('head.at')})::float8 * 1000`.as('ms'),
        )
        .where('head.origin', '=', origin)
        .whereRef('head.size', '>', 'known.size')
        .orderBy('head.size')
        .limit(1)
        .as('behind_ms'),
    ])
    .executeTakeFirstOrThrow();
  const received = Math.max(0, size);
  return {
    size: received,
    behindEvents: Math.max(0, (newest ?? 0) - received),
    behindMs: Math.max(0, behind_ms ?? 0),
  };
}

/** The anchors that were due at least once for a log. */
export async function listAnchorNames(pool: pg.Pool, origin: string): Promise<string[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.log_anchor')
    .select('name')
    .where('origin', '=', origin)
    .orderBy('name')
    .execute();
  return rows.map(({ name }) => name);
}

/** The newest heads under an origin, the largest first. */
export async function latestHeads(pool: pg.Pool, origin: string, limit: number): Promise<SealedHead[]> {
  return headsOf(pool, origin).select('at').orderBy('size', 'desc').limit(limit).execute();
}

/** The largest head under any of these origins; undefined if there is none. */
export async function readLargestHead(
  pool: pg.Pool,
  origins: readonly string[],
): Promise<StoredHead | undefined> {
  const heads = await Promise.all(origins.map((origin) => readHead(pool, origin)));
  return heads.filter((head) => head !== undefined).toSorted((a, b) => b.size - a.size)[0];
}

/** Heads under an origin that are larger than a size, in order. */
export async function readHeads(
  pool: pg.Pool,
  origin: string,
  afterSize: number,
  limit: number,
): Promise<StoredHead[]> {
  return headsOf(pool, origin).where('size', '>', afterSize).orderBy('size').limit(limit).execute();
}

/** The hashes of the filled parts of tiles, by `level/tile`. */
export async function readTiles(
  pool: pg.Pool,
  places: readonly { readonly level: number; readonly tile: number }[],
): Promise<ReadonlyMap<string, Buffer>> {
  // raw SQL: Kysely cannot join an unnest of two arrays
  const { rows } = await pool.query<{ level: number; tile: number; hashes: Buffer }>({
    name: 'read_log_tiles',
    text: `select level, tile, hashes
      from unnest($1::smallint[], $2::bigint[]) as wanted(level, tile)
      join tollbook.log_tile using (level, tile) where lane_id = 1`,
    values: [places.map(({ level }) => level), places.map(({ tile }) => tile)],
  });
  return new Map(rows.map(({ level, tile, hashes }) => [`${level}/${tile}`, hashes]));
}

/**
 * The tree, and the content of the tiles of each level, for the only lane.
 * @throws DamagedLedgerError if the row of the tree is missing, or is not alone
 */
export async function readStoredTree(pool: pg.Pool): Promise<{
  readonly size: number;
  readonly edge: Buffer;
  /** The largest head under any origin. */
  readonly newest: number | null;
  readonly levels: readonly { readonly level: number; readonly tiles: number; readonly bytes: number }[];
}> {
  // raw SQL: one statement, so that its parts belong together
  const { rows } = await pool.query<{
    lane_id: number;
    size: number;
    edge: Buffer;
    newest: number | null;
    levels: { level: number; tiles: number; bytes: number }[];
  }>(
    `select tree.lane_id, tree.size, tree.edge, (select max(head.size) from tollbook.log_head head) as newest,
      (select coalesce(json_agg(to_json(held) order by held.level), '[]') from (
        select level, count(*) as tiles, sum(octet_length(hashes)) as bytes from tollbook.log_tile group by level) held) as levels
     from tollbook.log_tree tree`,
  );
  const [tree] = rows;
  if (tree?.lane_id !== 1 || rows.length > 1)
    throw new DamagedLedgerError('log_tree: the row of the tree is missing, or there are several');
  return tree;
}

/** The origins under which heads were signed. */
export async function readOrigins(pool: pg.Pool): Promise<string[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.log_head')
    .select('origin')
    .distinct()
    .orderBy('origin')
    .execute();
  return rows.map(({ origin }) => origin);
}

/** The leaves of `count` events after a place, in order. */
export async function readLeaves(pool: pg.Pool, afterSeq: number, count: number): Promise<Buffer[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select(leafBytes.as('leaf'))
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('seq', '<=', afterSeq + count)
    .orderBy('seq')
    .execute();
  return rows.map(({ leaf }) => leaf);
}

/** The most leaves in memory at a time. */
const leavesAtOnce = 2_000;

/** The leaves of the first `size` events, or of those after `from`, in order and in parts. */
export async function* firstLeaves(pool: pg.Pool, size: number, from = 0): AsyncGenerator<readonly Buffer[]> {
  for (let after = from; after < size; after += leavesAtOnce)
    yield await readLeaves(pool, after, Math.min(leavesAtOnce, size - after));
}

/** The newest head, if this anchor is due and has not received it. */
export async function takeAnchor(
  pool: pg.Pool,
  origin: string,
  name: string,
  everyMs: number,
): Promise<{ readonly size: number; readonly note: string } | undefined> {
  const [head] = await callTableFunction(pool, 'take_anchor', [origin, name, everyMs]);
  return head;
}

/** Makes an anchor due in `afterMs`, if it would be later. */
export function scheduleAnchor(pool: pg.Pool, origin: string, name: string, afterMs: number): Promise<void> {
  return callFunction(pool, 'schedule_anchor', [origin, name, afterMs]);
}

/** Records that an anchor has received the head of this size. */
export function recordAnchor(pool: pg.Pool, origin: string, name: string, size: number): Promise<void> {
  return callFunction(pool, 'record_anchor', [origin, name, size]);
}
