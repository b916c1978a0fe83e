import type pg from 'pg';
import { readCheckpoint } from '../domain/log/checkpoint.ts';
import { isIncluded, leafHash } from '../domain/log/merkle.ts';
import { readLargestHead, readLogGeneration, readOrigins, type StoredHead } from '../store/log.ts';
import { proveEvents } from './prove.ts';

/**
 * Of events that were read, by `seq`, those that are not the ones that were sealed: no inclusion proof leads from their bytes to the newest
 * head of the log. None where there is no log; events that no head covers yet are not looked at. The signature of the head is not checked.
 * @throws CheckpointError where the head is none
 */
export async function findChangedEvents(
  pool: pg.Pool,
  leaves: ReadonlyMap<number, Uint8Array>,
): Promise<number[]> {
  const head = leaves.size === 0 ? undefined : await newestHead(pool);
  if (!head) return [];
  const { size, root } = readCheckpoint(head.note);
  const proofs = await proveEvents(
    pool,
    { size },
    [...leaves.keys()].filter((seq) => seq <= size),
  );
  return proofs.flatMap(({ seq, hashes }) => {
    const leaf = leaves.get(seq);
    return leaf && isIncluded({ index: seq - 1, size, root }, leafHash(leaf), hashes) ? [] : [seq];
  });
}

/** Of the present generation of the log, whatever its name is. */
async function newestHead(pool: pg.Pool): Promise<StoredHead | undefined> {
  const [{ generation }, origins] = await Promise.all([readLogGeneration(pool), readOrigins(pool)]);
  const present = origins.filter((origin) => generation === 1 || origin.endsWith(`/${generation}`));
  return readLargestHead(pool, present);
}
