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

/** After a failure, unless the anchor is due earlier. */
const retryMs = 60_000;

/** The outcome of publishing to an anchor. */
export type PublicationResult =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'done'; readonly size: number }
  | { readonly kind: 'failed'; readonly size: number; readonly cause: string };

/** Publishes the newest committed tree head to an anchor that is due and lacks it. One process at a time does so. */
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
 * Seals all recorded events and publishes to every anchor without cost, due or not. Called at shutdown, so that everything this
 * process has recorded is anchored.
 */
export async function sealAndPublish(
  pool: pg.Pool,
  signer: NoteSigner,
  everyEvents: number,
  anchors: readonly Anchor[],
): Promise<(PublicationResult & { readonly anchor: string })[]> {
  // events that other processes record meanwhile are theirs to publish
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

/** An anchor that could not be read, or whose checkpoint is not valid. */
export interface UnreadableAnchor {
  readonly anchor: string;
  readonly cause: string;
}

/** The database is not the anchored one: with it the log would sign a second history. */
class ForgottenHistoryError extends Error {
  override readonly name = 'ForgottenHistoryError';
}

/**
 * Compares the database with the newest checkpoint of every readable anchor. Returns the anchors that could not be read.
 * @throws ForgottenHistoryError where the database is behind a checkpoint, or has another history
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
        `the last ${head.size - size} events are missing, as in a restored backup. ${recoveryAdvice(origin)}`,
    );
  if (head.size === 0 || head.root.equals(await rootFromTiles(pool, head.size))) return;
  throw new ForgottenHistoryError(
    `the first ${head.size} events of this database are not those of the checkpoint in ${anchor.place} (${anchor.name}): ` +
      `it has another history. ${recoveryAdvice(origin)}`,
  );
}

function recoveryAdvice(origin: string): string {
  return (
    'Restore a newer backup, or replay the write-ahead log to its end. If those events are lost, ' +
    `give the log another name ([log] origin, now "${origin}"), so that no name signs two histories, ` +
    'and search the chain for payments that this database lacks.'
  );
}
