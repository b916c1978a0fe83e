import pg from 'pg';
import { hashBytes } from '../domain/log/merkle.ts';
import { queriesOn } from './database.ts';

/** A head as it was signed: the tree's size and root, and the checkpoint's text. */
export interface StoredHead {
  readonly size: number;
  readonly root: Buffer;
  readonly note: string;
}

/** Where the log stands, read in one statement. */
export interface LogTip {
  /** Events that the ledger holds. */
  readonly seq: number;
  /** Leaves that the tree holds. */
  readonly size: number;
  readonly edge: Buffer;
  /** The newest head under that origin; undefined where there was none. */
  readonly head: { readonly size: number; readonly ageMs: number } | undefined;
}

export async function readLogTip(pool: pg.Pool, origin: string): Promise<LogTip> {
  const { rows } = await pool.query<{
    seq: number;
    size: number;
    edge: Buffer;
    head: number | null;
    age_ms: number | null;
  }>({
    name: 'read_log_tip',
    text: `select lane.seq, tree.size, tree.edge, head.size as head,
        extract(epoch from tollbook.clock() - head.at)::float8 * 1000 as age_ms
      from tollbook.lane join tollbook.log_tree tree using (lane_id)
      left join lateral (
        select size, at from tollbook.log_head where origin = $1 order by size desc limit 1) head on true
      where lane.lane_id = 1`,
    values: [origin],
  });
  const row = rows[0];
  if (!row) throw new Error('the ledger has no lane');
  const { seq, size, edge, head, age_ms } = row;
  return { seq, size, edge, head: head === null ? undefined : { size: head, ageMs: age_ms ?? 0 } };
}

/**
 * The leaf hashes of the events after a place, one behind the other. Hashed where the leaves are: only 32 bytes of each
 * cross the wire. Throws where one of them is missing.
 */
export async function readLeafHashes(pool: pg.Pool, afterSeq: number, count: number): Promise<Buffer> {
  const { rows } = await pool.query<{ hashes: Buffer | null; last: number | null }>({
    name: 'read_leaf_hashes',
    text: `select string_agg(sha256('\\x00'::bytea || leaf), ''::bytea order by seq) as hashes, max(seq) as last
      from (select seq, leaf from tollbook.event
        where lane_id = 1 and seq > $1 and seq <= $2 order by seq offset 0) read`,
    values: [afterSeq, afterSeq + count],
  });
  const hashes = rows[0]?.hashes;
  if (hashes?.length !== count * hashBytes || rows[0]?.last !== afterSeq + count)
    throw new Error(`of the events ${afterSeq + 1} to ${afterSeq + count} some are missing`);
  return hashes;
}

export interface LogGrowth {
  readonly origin: string;
  readonly from: number;
  readonly size: number;
  readonly edge: Buffer;
  readonly root: Buffer;
  readonly note: string;
  readonly rows: readonly {
    readonly level: number;
    readonly tile: number;
    readonly offset: number;
    readonly bytes: Buffer;
  }[];
}

/** Commits a grown tree with its head. False where another sealer was first: nothing was changed. */
export async function extendLog(pool: pg.Pool, growth: LogGrowth): Promise<boolean> {
  const { origin, from, size, edge, root, note, rows } = growth;
  const tiles = rows.map(({ level, tile, offset, bytes }) => ({
    level,
    tile,
    offset,
    hex: bytes.toString('hex'),
  }));
  const text = pg.escapeLiteral;
  // one simple-protocol message: a client that vanishes in the middle of it keeps no lock
  const { rows: answers } = await pool.query<{ done: boolean }>(
    `select tollbook.extend_log(1::smallint, ${text(origin)}, ${Math.trunc(from)}, ${Math.trunc(size)},
      '\\x${edge.toString('hex')}', '\\x${root.toString('hex')}', ${text(note)}, ${text(JSON.stringify(tiles))}) as done`,
  );
  return answers[0]?.done ?? false;
}

/** The newest head under an origin, or the one of a size; undefined where there is none. */
export async function readHead(
  pool: pg.Pool,
  origin: string,
  size?: number,
): Promise<StoredHead | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.log_head')
    .select(['size', 'root', 'note'])
    .where('origin', '=', origin)
    .$if(size !== undefined, (heads) => heads.where('size', '=', size ?? 0))
    .orderBy('size', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Heads under an origin beyond a size, in order. */
export async function readHeads(
  pool: pg.Pool,
  origin: string,
  afterSize: number,
  limit: number,
): Promise<StoredHead[]> {
  return queriesOn(pool)
    .selectFrom('tollbook.log_head')
    .select(['size', 'root', 'note'])
    .where('origin', '=', origin)
    .where('size', '>', afterSize)
    .orderBy('size')
    .limit(limit)
    .execute();
}

/** The bytes of tiles by `level/tile`, as far as they are filled. */
export async function readTiles(
  pool: pg.Pool,
  places: readonly { readonly level: number; readonly tile: number }[],
): Promise<ReadonlyMap<string, Buffer>> {
  const { rows } = await pool.query<{ level: number; tile: number; hashes: Buffer }>({
    name: 'read_log_tiles',
    text: `select level, tile, hashes
      from unnest($1::smallint[], $2::bigint[]) as asked(level, tile)
      join tollbook.log_tile using (level, tile) where lane_id = 1`,
    values: [places.map(({ level }) => level), places.map(({ tile }) => tile)],
  });
  return new Map(rows.map(({ level, tile, hashes }) => [`${level}/${tile}`, hashes]));
}

/** The leaves of a stretch of events, in order. */
export async function readLeaves(pool: pg.Pool, afterSeq: number, count: number): Promise<Buffer[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select('leaf')
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('seq', '<=', afterSeq + count)
    .orderBy('seq')
    .execute();
  return rows.map(({ leaf }) => leaf);
}

/** The newest head for an anchor that is due and has not been told of it. */
export async function takeAnchor(
  pool: pg.Pool,
  origin: string,
  name: string,
  everyMs: number,
): Promise<{ readonly size: number; readonly note: string } | undefined> {
  const { rows } = await pool.query<{ size: number; note: string }>(
    `select * from tollbook.take_anchor(${pg.escapeLiteral(origin)}, ${pg.escapeLiteral(name)}, ${Math.trunc(everyMs)})`,
  );
  return rows[0];
}

/** Has an anchor told in `afterMs`, where it would be later. */
export async function scheduleAnchor(
  pool: pg.Pool,
  origin: string,
  name: string,
  afterMs: number,
): Promise<void> {
  await pool.query(
    `select tollbook.schedule_anchor(${pg.escapeLiteral(origin)}, ${pg.escapeLiteral(name)}, ${Math.trunc(afterMs)})`,
  );
}

export async function recordAnchor(pool: pg.Pool, origin: string, name: string, size: number): Promise<void> {
  await pool.query(
    `select tollbook.record_anchor(${pg.escapeLiteral(origin)}, ${pg.escapeLiteral(name)}, ${Math.trunc(size)})`,
  );
}
