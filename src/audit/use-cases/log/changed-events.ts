import type pg from 'pg';
import { CheckpointError, readCheckpoint, type TreeHead } from '../../../base/values/log/checkpoint.ts';
import { isIncluded, leafHash, RightEdge } from '../../../base/values/log/merkle.ts';
import { DamagedLedgerError } from '../../../ledger/store/export.ts';
import {
  readLargestHead,
  readLogGeneration,
  readOrigins,
  readStoredTree,
  type StoredHead,
} from '../../store/log.ts';
import { appendEvents, proveEvents, verifiedEdge } from './prove.ts';

/**
 * Of events that were read, by `seq`, those that are not the ones that were sealed: no inclusion proof leads from their bytes to the newest
 * head of the log. None if there is no log; events that no head covers yet are not looked at. Where the log itself was damaged, that is all that
 * it covers. The signature of the head is not checked.
 */
export async function findChangedEvents(
  pool: pg.Pool,
  leaves: ReadonlyMap<number, Uint8Array>,
): Promise<number[]> {
  const head = leaves.size === 0 ? undefined : await readPresentHead(pool);
  if (!head) return [];
  const covered = [...leaves.keys()].filter((seq) => seq <= head.size);
  try {
    const { size, root } = readCheckpoint(head.note);
    const proofs = await proveEvents(pool, { size }, covered);
    return proofs.flatMap(({ seq, hashes }) => {
      const leaf = leaves.get(seq);
      return leaf && isIncluded({ index: seq - 1, size, root }, leafHash(leaf), hashes) ? [] : [seq];
    });
  } catch (error) {
    if (error instanceof CheckpointError || error instanceof RangeError) return covered;
    throw error;
  }
}

/**
 * Whether the events are those that the newest head of the log covers, all of them: an event that was removed, or moved to another stream, leaves
 * the remaining events of its stream as sealed. True if there is no log. The signature of the head is not checked.
 * @param since a tree that somebody else has verified: it must be the beginning of the head's, and only the events after it are read
 */
export async function isAsSealed(pool: pg.Pool, since?: Pick<TreeHead, 'size' | 'root'>): Promise<boolean> {
  try {
    const tree = await readStoredTree(pool);
    // both grow together: if the tree is larger, heads were removed
    if (tree.size !== (tree.newest ?? 0)) return false;
    const head = await readPresentHead(pool);
    if (!head) return since === undefined;
    const { size, root } = readCheckpoint(head.note);
    if (size !== head.size) return false;
    const edge = since ? await verifiedEdge(pool, since) : new RightEdge();
    if (!edge) return false;
    await appendEvents(pool, edge, size);
    return edge.size === size && edge.root().equals(root);
  } catch (error) {
    const isDamage = error instanceof DamagedLedgerError || error instanceof RangeError;
    if (isDamage || error instanceof CheckpointError) return false;
    throw error;
  }
}

/** The newest head of the present generation of the log, whatever its name is; undefined if there is none yet. */
export async function readPresentHead(pool: pg.Pool): Promise<StoredHead | undefined> {
  const [{ generation }, origins] = await Promise.all([readLogGeneration(pool), readOrigins(pool)]);
  const present = origins.filter((origin) => generation === 1 || origin.endsWith(`/${generation}`));
  return readLargestHead(pool, present);
}
