import type pg from 'pg';
import { type NoteVerifier, openCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { hashBytes, leafHash } from '../../../base/values/log/merkle.ts';
import { tileWidth } from '../../../base/values/log/tiles.ts';
import { DamagedLedgerError, readExportEnd, readPlacedLeaves } from '../../../ledger/store/export.ts';
import { readHeads, readOrigins, readStoredTree, readTiles, type StoredHead } from '../../store/log.ts';
import { readReconciledRoots } from '../../store/reconciliations.ts';
import { TreeRoots } from '../log/tree-roots.ts';
import { LogComparison } from './compare-log.ts';
import { ExportVerifier, type GivenCheckpoint, type Verdict } from './verify.ts';

const eventsAtOnce = 2_048;
const headsAtOnce = 1_000;
const tilesAtOnce = 64;
const otherColumns = 'its time or its stream is not as an append writes it: the column was changed';

/**
 * Verifies the ledger in its database: all that an export allows, and also that counters, the tree, every tree head and the roots of stored
 * reports match the events; of heads under the key's name also the signature. Changes after sealing are found event by event.
 */
export async function verifyDatabase(
  pool: pg.Pool,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier | undefined,
): Promise<Verdict> {
  try {
    return await verifyEvents(pool, checkpoints, verifier);
  } catch (error) {
    if (!(error instanceof DamagedLedgerError)) throw error;
    const check = new ExportVerifier(checkpoints, verifier);
    check.note({ seq: 0, words: error.message });
    return check.finish(new TreeRoots([]));
  }
}

async function verifyEvents(
  pool: pg.Pool,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier | undefined,
): Promise<Verdict> {
  const { seq, last, counters } = await readExportEnd(pool);
  const stored = await readStoredTree(pool);
  const reconciled = await readReconciledRoots(pool);
  const check = new ExportVerifier(checkpoints, verifier);
  const tree = new TreeRoots([...check.sizes, ...reconciled.map(({ size }) => size)]);
  const log = new LogComparison(stored);
  const heads = await HeadComparison.open(pool, verifier);
  for (let after = 0; ;) {
    const events = await readPlacedLeaves(pool, after, last, eventsAtOnce);
    if (events.length === 0) break;
    const sealed = await readSealedHashes(pool, check.size, events.length);
    for (const [index, event] of events.entries()) {
      const place = check.size + 1;
      const hash = leafHash(event.leaf);
      const wrong =
        unsealed(hash, sealed.subarray(index * hashBytes, (index + 1) * hashBytes), place <= stored.size) ??
        (event.is_as_written ? undefined : otherColumns);
      check.leaf(event.leaf);
      tree.appendHash(hash);
      log.append(hash);
      if (wrong !== undefined) check.note({ seq: place, words: wrong });
      for (const words of await heads.at(tree)) check.note({ seq: check.size, words });
    }
    after = events.at(-1)?.seq ?? last;
  }
  for (const words of await heads.left(pool, tree.size)) check.note({ seq: check.size, words });
  for (const words of await logWrong(pool, log, stored)) check.note({ seq: check.size, words });
  for (const { size, root } of reconciled)
    if (size <= tree.size && tree.at.get(size)?.toString('base64') !== root)
      check.note({ seq: size, words: `reconciliation: a stored report has another root of ${size} events` });
  check.counters(seq, counters);
  return check.finish(tree);
}

/** The heads of every origin, side by side in the order of their sizes. */
class HeadComparison {
  readonly #verifier: NoteVerifier | undefined;
  readonly #logs: {
    readonly origin: string;
    readonly heads: AsyncGenerator<StoredHead, undefined>;
    next: StoredHead | undefined;
  }[];
  #nextSize = 0;

  private constructor(
    verifier: NoteVerifier | undefined,
    logs: { origin: string; heads: AsyncGenerator<StoredHead, undefined>; next: StoredHead | undefined }[],
  ) {
    this.#verifier = verifier;
    this.#logs = logs;
  }

  static async open(pool: pg.Pool, verifier: NoteVerifier | undefined): Promise<HeadComparison> {
    const logs = [];
    for (const origin of await readOrigins(pool)) {
      const heads = headsUnder(pool, origin);
      logs.push({ origin, heads, next: (await heads.next()).value });
    }
    return new HeadComparison(verifier, logs);
  }

  /** What is wrong with the heads of this size and those before. */
  async at(tree: TreeRoots): Promise<string[]> {
    if (tree.size < this.#nextSize) return [];
    const wrong: string[] = [];
    for (const log of this.#logs)
      while (log.next && log.next.size <= tree.size) {
        const words = headWrong(log.origin, log.next, tree, this.#verifier);
        if (words !== undefined) wrong.push(words);
        log.next = (await log.heads.next()).value;
      }
    this.#nextSize = Math.min(...this.#logs.map(({ next }) => next?.size ?? Infinity));
    return wrong;
  }

  /** What is wrong with the heads beyond the last event that was read, which a gateway may have signed since. */
  async left(pool: pg.Pool, events: number): Promise<string[]> {
    if (this.#logs.every(({ next }) => next === undefined)) return [];
    const { seq } = await readExportEnd(pool);
    return this.#logs.flatMap(({ next }) =>
      next && next.size > seq
        ? `a tree head of ${next.size} events was signed, but the ledger has ${events}: the last ones were removed`
        : [],
    );
  }
}

async function* headsUnder(pool: pg.Pool, origin: string): AsyncGenerator<StoredHead, undefined> {
  for (let after = -1; ;) {
    const heads = await readHeads(pool, origin, after, headsAtOnce);
    if (heads.length === 0) return undefined;
    yield* heads;
    after = heads.at(-1)?.size ?? after;
  }
}

function headWrong(
  origin: string,
  { size, root, note }: StoredHead,
  tree: TreeRoots,
  verifier: NoteVerifier | undefined,
): string | undefined {
  if (size === tree.size && !root.equals(tree.root))
    return `the signed tree head of ${size} events has another history`;
  if (!note.startsWith(`${origin}\n${size}\n${root.toString('base64')}\n`))
    return `the tree head of ${size} events is not the signed one`;
  if (verifier?.name !== origin) return undefined;
  try {
    openCheckpoint(note, verifier);
    return undefined;
  } catch (error) {
    return `the tree head of ${size} events: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The tree's row, and the tiles above those of the leaves; that these are all there are. */
async function logWrong(
  pool: pg.Pool,
  log: LogComparison,
  stored: Awaited<ReturnType<typeof readStoredTree>>,
): Promise<string[]> {
  const wrong: string[] = [];
  if (stored.size !== (stored.newest ?? 0))
    wrong.push(`log_tree: the tree has ${stored.size} events, but its newest head ${stored.newest ?? 0}`);
  const edge = log.edgeWrong();
  if (edge !== undefined) wrong.push(edge);
  const counts = log.levels();
  for (
    let level = 0;
    level < Math.max(counts.length, ...stored.levels.map((one) => one.level + 1));
    level += 1
  ) {
    const count = counts[level] ?? 0;
    const { tiles, bytes } = stored.levels.find((one) => one.level === level) ?? { tiles: 0, bytes: 0 };
    if (tiles !== Math.ceil(count / tileWidth) || bytes !== count * hashBytes)
      wrong.push(
        `log_tile: level ${level} has ${bytes / hashBytes} hashes in ${tiles} tiles, by the events ${count}`,
      );
  }
  let waiting: { level: number; tile: number; hashes: Buffer }[] = [];
  const compare = async (): Promise<void> => {
    const found = await readTiles(pool, waiting);
    for (const { level, tile, hashes } of waiting)
      // a tile may have been filled further since
      if (!found.get(`${level}/${tile}`)?.subarray(0, hashes.length).equals(hashes))
        wrong.push(`log_tile: tile ${tile} of level ${level} does not have the hashes of the events`);
    waiting = [];
  };
  for (const tile of log.tiles()) {
    waiting.push(tile);
    if (waiting.length === tilesAtOnce) await compare();
  }
  if (waiting.length > 0) await compare();
  return wrong;
}

/** The stored leaf hashes of the sealed events of a range. */
async function readSealedHashes(pool: pg.Pool, from: number, count: number): Promise<Buffer> {
  const [first, end] = [Math.floor(from / tileWidth), Math.ceil((from + count) / tileWidth)];
  const places = Array.from({ length: end - first }, (_, i) => ({ level: 0, tile: first + i }));
  const tiles = await readTiles(pool, places);
  const bytes = Buffer.concat(
    // a tile that is missing or too short must not move later tiles
    places.map(({ level, tile }) => {
      const row = Buffer.alloc(tileWidth * hashBytes);
      tiles.get(`${level}/${tile}`)?.copy(row);
      return row;
    }),
  );
  return bytes.subarray((from - first * tileWidth) * hashBytes);
}

const noHash = Buffer.alloc(hashBytes);

function unsealed(hash: Buffer, stored: Buffer, isSealed: boolean): string | undefined {
  if (stored.equals(noHash))
    return isSealed
      ? 'it is sealed, but the log has no hash of it: a tile was changed or removed'
      : undefined;
  return stored.equals(hash)
    ? undefined
    : 'its bytes differ from the sealed ones: the event was changed, replaced or moved after sealing';
}
