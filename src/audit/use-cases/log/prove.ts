import type pg from 'pg';
import {
  consistencyRanges,
  hashBytes,
  inclusionRanges,
  isIncluded,
  nodesOf,
  rangeHash,
  RightEdge,
  splitHashes,
  type TreeNode,
} from '../../../base/values/log/merkle.ts';
import { DamagedLedgerError } from '../../../ledger/store/export.ts';
import type { TreeHead } from '../../../base/values/log/checkpoint.ts';
import { placeOf, TileTree, tileWidth } from '../../../base/values/log/tiles.ts';
import { type LogTip, readLeafHashes, readTiles, type StoredHead } from '../../store/log.ts';

/** Proves the place of an event in the tree of a head. */
export interface InclusionProof {
  readonly seq: number;
  readonly leafHash: Buffer;
  /** From the leaf's sibling up. */
  readonly hashes: readonly Buffer[];
}

/** Leaves read in one statement. */
const leavesAtOnce = 8_192;

const maxCachedTiles = 128;
const wholeBytes = tileWidth * hashBytes;

/** Full tiles that were read lately (least recently used first out). They never change, and most proofs share them. */
export class TileCache {
  readonly #trees = new Map<string, TileTree>();

  get(place: string): TileTree | undefined {
    const tree = this.#trees.get(place);
    // moves the tile to the end of the eviction order
    if (tree && this.#trees.delete(place)) this.#trees.set(place, tree);
    return tree;
  }

  add(place: string, bytes: Buffer): TileTree {
    const tree = new TileTree(bytes);
    if (bytes.length !== wholeBytes) return tree;
    const [oldest] = this.#trees.size >= maxCachedTiles ? this.#trees.keys() : [];
    if (oldest !== undefined) this.#trees.delete(oldest);
    this.#trees.set(place, tree);
    return tree;
  }
}

/**
 * Inclusion proofs of several events for one head, with one read of the tiles.
 * @throws RangeError for an event that the head does not cover, and if a tile is missing or too short
 */
export async function proveEvents(
  pool: pg.Pool,
  { size }: Pick<StoredHead, 'size'>,
  seqs: readonly number[],
  known?: TileCache,
): Promise<InclusionProof[]> {
  const asked = seqs.map((seq) => ({
    seq,
    leaf: { level: 0, index: seq - 1 },
    ranges: inclusionRanges(seq - 1, size),
  }));
  const hashOf = await readNodes(
    pool,
    asked.flatMap(({ leaf, ranges }) => [leaf, ...ranges.flatMap(nodesOf)]),
    known,
  );
  return asked.map(({ seq, leaf, ranges }) => ({
    seq,
    leafHash: hashOf(leaf),
    hashes: ranges.map((range) => rangeHash(nodesOf(range).map(hashOf))),
  }));
}

/**
 * The hashes of the leaves of tiles, as far as a head covers them, by tile; undefined for a tile that does not lead to the root of the head.
 * One proof is enough for a tile: its other hashes are a part of it.
 * @throws RangeError if a tile is missing or too short
 */
export async function provenTiles(
  pool: pg.Pool,
  { size, root }: Pick<TreeHead, 'size' | 'root'>,
  wanted: readonly number[],
  known: TileCache,
): Promise<ReadonlyMap<number, readonly Buffer[] | undefined>> {
  const asked = wanted.map((tile) => {
    const index = tile * tileWidth;
    const leaves = Array.from({ length: Math.min(tileWidth, size - index) }, (_, i) => ({
      level: 0,
      index: index + i,
    }));
    return { tile, index, leaves, ranges: inclusionRanges(index, size) };
  });
  const hashOf = await readNodes(
    pool,
    asked.flatMap(({ leaves, ranges }) => [...leaves.slice(0, 1), ...ranges.flatMap(nodesOf)]),
    known,
  );
  return new Map(
    asked.map(({ tile, index, leaves, ranges }) => {
      const hashes = leaves.map(hashOf);
      const proof = ranges.map((range) => rangeHash(nodesOf(range).map(hashOf)));
      const [first] = hashes;
      return [tile, first && isIncluded({ index, size, root }, first, proof) ? hashes : undefined];
    }),
  );
}

/**
 * Proves that the tree of the first `old` leaves is a prefix of a head's tree.
 * @throws RangeError if there is no such tree
 */
export async function proveConsistency(
  pool: pg.Pool,
  old: number,
  { size }: Pick<StoredHead, 'size'>,
): Promise<Buffer[]> {
  const ranges = consistencyRanges(old, size);
  const hashOf = await readNodes(pool, ranges.flatMap(nodesOf));
  return ranges.map((range) => rangeHash(nodesOf(range).map(hashOf)));
}

/** The root of the first `size` leaves, computed from the stored tiles. */
export async function rootFromTiles(pool: pg.Pool, size: number): Promise<Buffer> {
  return (await edgeFromTiles(pool, size)).root();
}

/**
 * The right edge of a tree that somebody else has verified; undefined if the stored tiles begin with another one.
 * @throws RangeError where a tile is missing or too short
 */
export async function verifiedEdge(
  pool: pg.Pool,
  { size, root }: Pick<TreeHead, 'size' | 'root'>,
): Promise<RightEdge | undefined> {
  const edge = await edgeFromTiles(pool, size);
  return edge.root().equals(root) ? edge : undefined;
}

/** The right edge of the first `size` leaves, computed from the stored tiles. */
async function edgeFromTiles(pool: pg.Pool, size: number): Promise<RightEdge> {
  const nodes = nodesOf({ from: 0, to: size });
  const hashOf = await readNodes(pool, nodes);
  return new RightEdge(size, nodes.map(hashOf));
}

/**
 * The root of the first `size` events, sealed or not: a failover may have lost a head that an anchor holds, and kept its events.
 */
export async function rootOfFirst(
  pool: pg.Pool,
  size: number,
  tree: Pick<LogTip, 'size' | 'edge'>,
): Promise<Buffer> {
  if (size <= tree.size) return rootFromTiles(pool, size);
  const edge = RightEdge.from(tree.size, tree.edge);
  await appendEvents(pool, edge, size);
  return edge.root();
}

/**
 * The root of the first `size` events, sealed or not: from the stored hashes up to an event, and from the bytes of the events after it. So
 * a caller that knows the root learns that the events after it are those of the root. Without stored hashes every event is read. Undefined if an
 * event is missing.
 */
export async function rootAfter(pool: pg.Pool, after: number, size: number): Promise<Buffer | undefined> {
  try {
    const edge = await edgeFromTiles(pool, Math.min(after, size)).catch(withoutTiles);
    await appendEvents(pool, edge, size);
    return edge.root();
  } catch (error) {
    if (error instanceof DamagedLedgerError) return undefined;
    throw error;
  }
}

function withoutTiles(error: unknown): RightEdge {
  if (error instanceof RangeError) return new RightEdge();
  throw error;
}

/**
 * Appends the events after those that a tree has, until it has the first `size`.
 * @throws DamagedLedgerError if one of them is missing
 */
export async function appendEvents(pool: pg.Pool, edge: RightEdge, size: number): Promise<void> {
  while (edge.size < size) {
    const wanted = Math.min(leavesAtOnce, size - edge.size);
    for (const leaf of splitHashes(await readLeafHashes(pool, edge.size, wanted))) edge.append(leaf);
  }
}

async function readNodes(
  pool: pg.Pool,
  nodes: readonly TreeNode[],
  known = new TileCache(),
): Promise<(node: TreeNode) => Buffer> {
  const places = new Map(
    nodes.map((node) => {
      const { level, tile } = placeOf(node);
      return [`${level}/${tile}`, { level, tile }];
    }),
  );
  const tiles = new Map<string, TileTree>();
  for (const place of places.keys()) {
    const tree = known.get(place);
    if (tree) tiles.set(place, tree);
  }
  const missing = [...places].filter(([place]) => !tiles.has(place)).map(([, at]) => at);
  const read = missing.length === 0 ? [] : await readTiles(pool, missing);
  for (const [place, bytes] of read) tiles.set(place, known.add(place, bytes));
  return (node) => {
    const { level, tile } = placeOf(node);
    const tree = tiles.get(`${level}/${tile}`);
    if (!tree) throw new RangeError(`the log lacks tile ${level}/${tile}`);
    return tree.hash(node);
  };
}

/** A C2SP tlog-proof: with the leaf of the event and the public key it can be verified offline. */
export function proofText({ seq, hashes }: InclusionProof, { note }: Pick<StoredHead, 'note'>): string {
  const lines = hashes.map((hash) => `${hash.toString('base64')}\n`);
  return `c2sp.org/tlog-proof@v1\nindex ${seq - 1}\n${lines.join('')}\n${note}`;
}
