import type pg from 'pg';
import {
  type NoteSigner,
  type NoteVerifier,
  openCheckpoint,
  readCheckpoint,
  type TreeHead,
} from '../domain/log/checkpoint.ts';
import type { Anchor, AnchorReading } from '../peers/anchors/anchor.ts';
import { scheduleAnchor, recordAnchor, readLogTip, takeAnchor } from '../store/log.ts';
import { rootFromTiles } from './prove.ts';
import { sealNext } from './seal.ts';

/** After a failure, where its turn comes later. */
const retryMs = 60_000;

/** What came of telling an anchor. */
export type PublicationResult =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'done'; readonly size: number }
  | { readonly kind: 'failed'; readonly size: number; readonly cause: string };

/** Hands an anchor the newest committed head, if it is due and has not got it. One process does so at a time. */
export async function publishNewestHead(
  pool: pg.Pool,
  origin: string,
  anchor: Anchor,
): Promise<PublicationResult> {
  const head = await takeAnchor(pool, origin, anchor.name, anchor.everyMs);
  if (!head) return { kind: 'nothing' };
  const answer = await anchor.publish({ origin, ...head, root: readCheckpoint(head.note).root });
  if (answer.kind === 'failed') {
    await scheduleAnchor(pool, origin, anchor.name, retryMs);
    return { kind: 'failed', size: head.size, cause: answer.cause };
  }
  await recordAnchor(pool, origin, anchor.name, head.size);
  return { kind: 'done', size: head.size };
}

/**
 * Seals what is there by now and tells every anchor that costs nothing, whether its turn has come or not: for the end of a
 * process, so that what it has written is in other hands.
 */
export async function sealAndPublish(
  pool: pg.Pool,
  signer: NoteSigner,
  everyEvents: number,
  anchors: readonly Anchor[],
): Promise<(PublicationResult & { readonly anchor: string })[]> {
  // others may go on writing, and hand that out themselves
  const { seq, ...from } = await readLogTip(pool, signer.name);
  for (let { size } = from, grown = true; size < seq && grown;) {
    await sealNext(pool, signer, { everyMs: 0, everyEvents });
    const tip = await readLogTip(pool, signer.name);
    grown = tip.size > size;
    size = tip.size;
  }
  return Promise.all(
    anchors
      .filter(({ isFree }) => isFree)
      .map(async (anchor) => {
        await scheduleAnchor(pool, signer.name, anchor.name, 0);
        return { ...(await publishNewestHead(pool, signer.name, anchor)), anchor: anchor.name };
      }),
  );
}

/** An anchor that could not be asked, or holds what cannot be believed. */
export interface UnreadableAnchor {
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
): Promise<UnreadableAnchor[]> {
  const unreadable: UnreadableAnchor[] = [];
  for (const anchor of anchors) {
    const reading = await anchor.newest?.(verifier.name);
    if (reading?.kind === 'failed') unreadable.push({ anchor: anchor.name, cause: reading.cause });
    if (reading?.kind !== 'note' && reading?.kind !== 'head') continue;
    let head: TreeHead;
    try {
      head = headOf(reading, verifier);
    } catch (error) {
      unreadable.push({ anchor: anchor.name, cause: error instanceof Error ? error.message : 'unknown' });
      continue;
    }
    await requireSameHistory(pool, verifier.name, anchor, head);
  }
  return unreadable;
}

function headOf(
  reading: Extract<AnchorReading, { kind: 'note' | 'head' }>,
  verifier: NoteVerifier,
): TreeHead {
  if (reading.kind === 'note') return openCheckpoint(reading.note, verifier);
  return { origin: verifier.name, size: reading.size, root: reading.root };
}

async function requireSameHistory(
  pool: pg.Pool,
  origin: string,
  anchor: Anchor,
  head: TreeHead,
): Promise<void> {
  const { size } = await readLogTip(pool, origin);
  if (head.size > size)
    throw new ForgottenHistoryError(
      `this database was sealed up to event ${size}, but ${anchor.place} (${anchor.name}) holds a checkpoint of ${head.size} events: ` +
        `it is a backup that forgot ${head.size - size} of them. ${recoveryAdvice(origin)}`,
    );
  if (head.size === 0 || head.root.equals(await rootFromTiles(pool, head.size))) return;
  throw new ForgottenHistoryError(
    `the first ${head.size} events of this database are not those of the checkpoint in ${anchor.place} (${anchor.name}): ` +
      `it is of another history. ${recoveryAdvice(origin)}`,
  );
}

function recoveryAdvice(origin: string): string {
  return (
    'To go on: restore a newer backup, or replay the write-ahead log to its end. If those events are lost for good, ' +
    `give the log another name ([log] origin, now "${origin}"), so that no two histories are signed under one, ` +
    'and look on the chain for payments that this database does not know.'
  );
}
