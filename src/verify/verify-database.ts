import type pg from 'pg';
import { type NoteVerifier, openCheckpoint } from '../domain/log/checkpoint.ts';
import { hashBytes, leafHash } from '../domain/log/merkle.ts';
import { tileWidth } from '../domain/log/tiles.ts';
import { readExportEnd, readPlacedLeaves } from '../store/export.ts';
import { readHeads, readTiles, type StoredHead } from '../store/log.ts';
import { TreeRoots } from '../log/tree-roots.ts';
import { ExportVerifier, type GivenCheckpoint, type Verdict } from './verify.ts';

const eventsAtOnce = 2_048;
const headsAtOnce = 1_000;
const otherColumns = 'its time or its stream is not as an append writes it: the column was changed';

/**
 * Verifies the ledger in its database: all that an export allows, and also that counters, stored hashes and every tree head
 * under the key's name match the events. Changes after sealing are found event by event.
 */
export async function verifyDatabase(
  pool: pg.Pool,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier | undefined,
): Promise<Verdict> {
  const { seq, last, counters } = await readExportEnd(pool);
  const check = new ExportVerifier(checkpoints, verifier);
  const tree = new TreeRoots(check.sizes);
  const heads = verifier && headsUnder(pool, verifier);
  let head = await heads?.next();
  for (let after = 0; ;) {
    const events = await readPlacedLeaves(pool, after, last, eventsAtOnce);
    if (events.length === 0) break;
    const sealed = await readSealedHashes(pool, check.size, events.length);
    for (const [index, event] of events.entries()) {
      const place = check.size + 1;
      const wrong = unsealed(event.leaf, sealed, index) ?? (event.is_as_written ? undefined : otherColumns);
      check.leaf(event.leaf);
      tree.append(event.leaf);
      if (wrong !== undefined) check.note({ seq: place, words: wrong });
      while (head && !head.done && head.value.size <= check.size) {
        const words = headWrong(head.value, tree, verifier);
        if (words !== undefined) check.note({ seq: head.value.size, words });
        head = await heads?.next();
      }
    }
    after = events.at(-1)?.seq ?? last;
  }
  if (head && !head.done)
    check.note({
      seq: check.size,
      words: `a tree head of ${head.value.size} events was signed, but the ledger has ${check.size}: the last ones were removed`,
    });
  check.counters(seq, counters);
  return check.finish(tree);
}

async function* headsUnder(pool: pg.Pool, { name }: NoteVerifier): AsyncGenerator<StoredHead, undefined> {
  for (let after = 0; ;) {
    const heads = await readHeads(pool, name, after, headsAtOnce);
    if (heads.length === 0) return undefined;
    yield* heads;
    after = heads.at(-1)?.size ?? after;
  }
}

function headWrong(
  { size, root, note }: StoredHead,
  tree: TreeRoots,
  verifier: NoteVerifier | undefined,
): string | undefined {
  if (size === tree.size && !root.equals(tree.root))
    return `the signed tree head of ${size} events has another history`;
  try {
    const signed = verifier && openCheckpoint(note, verifier);
    return signed && (signed.size !== size || !signed.root.equals(root))
      ? `the tree head of ${size} events is not the signed one`
      : undefined;
  } catch (error) {
    return `the tree head of ${size} events: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The stored leaf hashes of a range of events, as far as it is sealed. */
async function readSealedHashes(pool: pg.Pool, from: number, count: number): Promise<Buffer> {
  const [first, end] = [Math.floor(from / tileWidth), Math.ceil((from + count) / tileWidth)];
  const places = Array.from({ length: end - first }, (_, i) => ({ level: 0, tile: first + i }));
  const tiles = await readTiles(pool, places);
  const bytes = Buffer.concat(
    places.map(({ level, tile }) => tiles.get(`${level}/${tile}`) ?? Buffer.alloc(0)),
  );
  return bytes.subarray((from - first * tileWidth) * hashBytes);
}

function unsealed(leaf: Buffer, sealed: Buffer, index: number): string | undefined {
  const hash = sealed.subarray(index * hashBytes, (index + 1) * hashBytes);
  return hash.length === 0 || hash.equals(leafHash(leaf))
    ? undefined
    : 'its bytes differ from the sealed ones: the event was changed, replaced or moved after sealing';
}
