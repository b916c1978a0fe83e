import type pg from 'pg';
import {
  CheckpointError,
  type NoteVerifier,
  openCheckpoint,
  readCheckpoint,
  type TreeHead,
} from '../../../base/values/log/checkpoint.ts';
import type { RightEdge } from '../../../base/values/log/merkle.ts';
import { verifiedEdge } from '../log/prove.ts';
import { TreeRoots } from '../log/tree-roots.ts';
import { poll } from '../../../base/runtime/poll.ts';
import { firstLeaves, readLargestHead, readOrigins, type StoredHead } from '../../store/log.ts';
import type { GivenCheckpoint } from './verify.ts';

/** Whether a signed checkpoint covers the first events of a ledger. */
export type Sealing =
  | { readonly kind: 'sealed' }
  /** The newest checkpoint has fewer events: `covered`, 0 if there is none. */
  | { readonly kind: 'not_sealed'; readonly covered: number }
  /** The events are not those that were signed, or the signature is not one of the key. */
  | { readonly kind: 'changed'; readonly words: string };

/** A gateway seals its events within seconds. */
const patienceMs = 5_000;
const askEveryMs = 100;

/**
 * Compares the ledger in a database with the newest head of its log, by the bytes of its events alone. Waits some seconds for a head that
 * covers `events`. Without a key the head's signature is not checked.
 * @param since a tree that somebody else has verified: it must be the beginning of the head's, and only the events after it are read
 */
export async function sealingInDatabase(
  pool: pg.Pool,
  events: number,
  verifier: NoteVerifier | undefined,
  since?: Pick<TreeHead, 'size' | 'root'>,
): Promise<Sealing> {
  const found = await poll(() => newestHead(pool, verifier), {
    until: (head) => !head || head.size >= events,
    timeoutMs: patienceMs,
    pauses: { firstMs: askEveryMs, longestMs: askEveryMs },
  });
  if (!found) return { kind: 'not_sealed', covered: 0 };
  try {
    const head = verifier ? openCheckpoint(found.note, verifier) : readCheckpoint(found.note);
    const from = since && since.size <= found.size ? since : undefined;
    const edge = from && (await verifiedEdge(pool, from));
    if (from && !edge)
      return { kind: 'changed', words: `the first ${from.size} events of the log are not the attested ones` };
    return await compare(firstLeaves(pool, found.size, from?.size), head, events, edge);
  } catch (error) {
    if (error instanceof RangeError)
      return { kind: 'changed', words: `the log is damaged: ${error.message}` };
    if (!(error instanceof CheckpointError)) throw error;
    return {
      kind: 'changed',
      words: `the newest tree head of the log, of ${found.size} events: ${error.message}`,
    };
  }
}

/**
 * Compares the leaves of an export with the newest of the given checkpoints.
 * @throws CheckpointError if the key did not sign one of them
 */
export async function sealingInFile(
  leaves: AsyncIterable<readonly Buffer[]>,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier,
  events: number,
): Promise<Sealing> {
  const heads = checkpoints.map(({ source, note }) => {
    try {
      return openCheckpoint(note, verifier);
    } catch (error) {
      throw error instanceof CheckpointError ? new CheckpointError(`${source}: ${error.message}`) : error;
    }
  });
  const newest = heads.toSorted((a, b) => b.size - a.size)[0];
  return newest ? compare(leaves, newest, events) : { kind: 'not_sealed', covered: 0 };
}

/** Under the key's name, else the largest of all. */
async function newestHead(
  pool: pg.Pool,
  verifier: NoteVerifier | undefined,
): Promise<StoredHead | undefined> {
  return readLargestHead(pool, verifier ? [verifier.name] : await readOrigins(pool));
}

async function compare(
  batches: AsyncIterable<readonly Buffer[]>,
  { size, root }: TreeHead,
  events: number,
  edge?: RightEdge,
): Promise<Sealing> {
  const tree = new TreeRoots([size], edge);
  for await (const leaves of batches) {
    for (const leaf of leaves) if (tree.size < size) tree.append(leaf);
    if (tree.size === size) break;
  }
  if (tree.size < size)
    return {
      kind: 'changed',
      words: `a checkpoint of ${size} events was signed, but the ledger has ${tree.size}: ${size - tree.size} are missing`,
    };
  if (tree.at.get(size)?.equals(root) !== true)
    return { kind: 'changed', words: `the first ${size} events are not as they were sealed` };
  return size < events ? { kind: 'not_sealed', covered: size } : { kind: 'sealed' };
}
