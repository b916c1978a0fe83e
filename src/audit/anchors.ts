import type pg from 'pg';
import { type NoteVerifier, openCheckpoint, type TreeHead } from '../domain/checkpoint.ts';
import type { Anchor } from '../peers/anchor.ts';
import { noteAnchor, readLogTip, takeAnchor } from '../store/log.ts';
import { rootFromTiles } from './prove.ts';

/** What came of telling an anchor. */
export type Told =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'done'; readonly size: number }
  | { readonly kind: 'failed'; readonly size: number; readonly cause: string };

/** Hands an anchor the newest committed head, if it is due and has not got it. One process does so at a time. */
export async function tellAnchor(pool: pg.Pool, origin: string, anchor: Anchor): Promise<Told> {
  const head = await takeAnchor(pool, origin, anchor.name, anchor.everyMs);
  if (!head) return { kind: 'nothing' };
  const answer = await anchor.publish({ origin, ...head });
  if (answer.kind === 'failed') return { kind: 'failed', size: head.size, cause: answer.cause };
  await noteAnchor(pool, origin, anchor.name, head.size);
  return { kind: 'done', size: head.size };
}

/** An anchor that could not be asked, or holds what cannot be believed. */
export interface Unreadable {
  readonly anchor: string;
  readonly cause: string;
}

/** The database is not the one that was anchored: going on with it would sign a second history. */
class ForgottenHistoryError extends Error {
  override readonly name = 'ForgottenHistoryError';
}

/**
 * Holds the database against the newest checkpoint of every anchor that can be read. Returns those that cannot.
 * @throws ForgottenHistoryError where the database is behind one of them, or of another history
 */
export async function checkAnchors(
  pool: pg.Pool,
  verifier: NoteVerifier,
  anchors: readonly Anchor[],
): Promise<Unreadable[]> {
  const unreadable: Unreadable[] = [];
  for (const anchor of anchors) {
    const reading = await anchor.newest?.(verifier.name);
    if (reading?.kind === 'failed') unreadable.push({ anchor: anchor.name, cause: reading.cause });
    if (reading?.kind !== 'note') continue;
    let head: TreeHead;
    try {
      head = openCheckpoint(reading.note, verifier);
    } catch (error) {
      unreadable.push({ anchor: anchor.name, cause: error instanceof Error ? error.message : 'unknown' });
      continue;
    }
    await compare(pool, verifier.name, anchor, head);
  }
  return unreadable;
}

async function compare(pool: pg.Pool, origin: string, anchor: Anchor, head: TreeHead): Promise<void> {
  const { size } = await readLogTip(pool, origin);
  if (head.size > size)
    throw new ForgottenHistoryError(
      `this database was sealed up to event ${size}, but ${anchor.place} (${anchor.name}) holds a checkpoint of ${head.size} events: ` +
        `it is a backup that forgot ${head.size - size} of them. ${wayOut(origin)}`,
    );
  if (head.size === 0 || head.root.equals(await rootFromTiles(pool, head.size))) return;
  throw new ForgottenHistoryError(
    `the first ${head.size} events of this database are not those of the checkpoint in ${anchor.place} (${anchor.name}): ` +
      `it is of another history. ${wayOut(origin)}`,
  );
}

function wayOut(origin: string): string {
  return (
    'To go on: restore a newer backup, or replay the write-ahead log to its end. If those events are lost for good, ' +
    `give the log another name ([log] origin, now "${origin}"), so that no two histories are signed under one, ` +
    'and look on the chain for payments that this database does not know.'
  );
}
