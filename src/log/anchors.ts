import type pg from 'pg';
import {
  type NoteSigner,
  type NoteVerifier,
  openCheckpoint,
  parseVerifierKey,
  readCheckpoint,
  type TreeHead,
} from '../domain/log/checkpoint.ts';
import { originIn, signerIn } from '../domain/log/log-generation.ts';
import type { Anchor, AnchorReading } from '../peers/anchors/anchor.ts';
import { scheduleAnchor, readLogGeneration, recordAnchor, readLogTip, takeAnchor } from '../store/log.ts';
import { rootOfFirst } from './prove.ts';
import { sealNext } from './seal.ts';

/** The log's key under its present name. */
export async function currentSigner(pool: pg.Pool, first: NoteSigner): Promise<NoteSigner> {
  return signerIn(first, (await readLogGeneration(pool)).generation);
}

/** After a failure, unless the anchor is due earlier. */
const retryMs = 60_000;

/** The outcome of publishing to an anchor. */
export type PublicationResult =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'done'; readonly size: number }
  | { readonly kind: 'failed'; readonly size: number; readonly cause: string };

/**
 * Publishes the newest committed tree head to an anchor that is due and lacks it. One process at a time does so.
 * @param first the name of the log's first generation
 */
export async function publishNewestHead(
  pool: pg.Pool,
  first: string,
  anchor: Anchor,
): Promise<PublicationResult> {
  const origin = originIn(first, (await readLogGeneration(pool)).generation);
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
  first: NoteSigner,
  everyEvents: number,
  anchors: readonly Anchor[],
): Promise<(PublicationResult & { readonly anchor: string })[]> {
  const signer = await currentSigner(pool, first);
  // events that other processes record meanwhile are theirs to publish
  const { seq, ...from } = await readLogTip(pool, signer.name);
  for (let { size } = from, grown = true; size < seq && grown;) {
    await sealNext(pool, first, { everyMs: 0, everyEvents });
    const tip = await readLogTip(pool, signer.name);
    grown = tip.size > size;
    size = tip.size;
  }
  return Promise.all(
    anchors
      .filter(({ isFree }) => isFree)
      .map(async (anchor) => {
        await scheduleAnchor(pool, signer.name, anchor.name, 0);
        return { ...(await publishNewestHead(pool, first.name, anchor)), anchor: anchor.name };
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

/** What the newest checkpoint of an anchor says about the database. */
export type AnchorComparison = { readonly anchor: Anchor } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly cause: string }
  | { readonly kind: 'same'; readonly head: TreeHead }
  /** The checkpoint covers events that the database lacks: it has `seq`. */
  | { readonly kind: 'ahead'; readonly head: TreeHead; readonly seq: number }
  | { readonly kind: 'other_history'; readonly head: TreeHead }
);

/** Compares the database with the newest checkpoint of every anchor that can be read, under one name of the log. */
export async function compareAnchors(
  pool: pg.Pool,
  verifier: NoteVerifier,
  anchors: readonly Anchor[],
): Promise<AnchorComparison[]> {
  const compared: AnchorComparison[] = [];
  for (const anchor of anchors) {
    const reading = await readNewest(anchor, verifier);
    compared.push({ anchor, ...(reading.kind === 'head' ? await compare(pool, reading.head) : reading) });
  }
  return compared;
}

type NewestReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly cause: string }
  | { readonly kind: 'head'; readonly head: TreeHead };

/** The newest checkpoint of an anchor under the name of the verifier's key. */
async function readNewest(anchor: Anchor, verifier: NoteVerifier): Promise<NewestReading> {
  const reading = await anchor.newest?.(verifier.name);
  if (reading?.kind === 'failed') return { kind: 'unreadable', cause: reading.cause };
  if (reading?.kind !== 'note' && reading?.kind !== 'head') return { kind: 'none' };
  try {
    return { kind: 'head', head: headOf(reading, verifier) };
  } catch (error) {
    return { kind: 'unreadable', cause: error instanceof Error ? error.message : 'unknown' };
  }
}

function headOf(
  reading: Extract<AnchorReading, { kind: 'note' | 'head' }>,
  verifier: NoteVerifier,
): TreeHead {
  if (reading.kind === 'note') return openCheckpoint(reading.note, verifier);
  return { origin: verifier.name, size: reading.size, root: reading.root };
}

async function compare(
  pool: pg.Pool,
  head: TreeHead,
): Promise<
  | { readonly kind: 'same' | 'other_history'; readonly head: TreeHead }
  | { readonly kind: 'ahead'; readonly head: TreeHead; readonly seq: number }
> {
  const { seq, ...tree } = await readLogTip(pool, head.origin);
  if (head.size > seq) return { kind: 'ahead', head, seq };
  const isSame = head.size === 0 || head.root.equals(await rootOfFirst(pool, head.size, tree));
  return { kind: isSame ? 'same' : 'other_history', head };
}

/**
 * Compares the database with the newest checkpoint of every readable anchor. Returns the anchors that could not be read.
 * @param first the signer of the log's first generation
 * @throws ForgottenHistoryError where the database is behind a checkpoint, has another history, or was given up
 */
export async function checkAnchors(
  pool: pg.Pool,
  first: NoteSigner,
  anchors: readonly Anchor[],
): Promise<UnreadableAnchor[]> {
  const { generation } = await readLogGeneration(pool);
  const unreadable: UnreadableAnchor[] = [];
  const verifierIn = (number: number): NoteVerifier => parseVerifierKey(signerIn(first, number).verifierKey);
  for (const compared of await compareAnchors(pool, verifierIn(generation), anchors)) {
    const { anchor } = compared;
    if (compared.kind === 'unreadable') unreadable.push({ anchor: anchor.name, cause: compared.cause });
    if (compared.kind === 'ahead' || compared.kind === 'other_history')
      throw new ForgottenHistoryError(`${differenceText(compared)}. ${recoveryAdvice}`);
    const next = await readNewest(anchor, verifierIn(generation + 1));
    if (next.kind === 'head')
      throw new ForgottenHistoryError(
        `${anchor.place} (${anchor.name}) holds a checkpoint of ${next.head.origin}: the ledger was recovered into another ` +
          'database, and this one was given up. Start the gateway on the recovered database',
      );
  }
  return unreadable;
}

/** How the database differs from an anchor's checkpoint. */
export function differenceText(
  compared: Extract<AnchorComparison, { kind: 'ahead' | 'other_history' }>,
): string {
  const { anchor, head } = compared;
  const place = `${anchor.place} (${anchor.name})`;
  if (compared.kind === 'other_history')
    return (
      `the first ${head.size} events of this database are not those of the checkpoint in ${place}: ` +
      'it has another history'
    );
  return (
    `this database has ${compared.seq} events, but ${place} holds a checkpoint of ${head.size} events: ` +
    `the last ${head.size - compared.seq} events are missing, as in a restored backup`
  );
}

const recoveryAdvice =
  'Restore a newer backup, or replay the write-ahead log to its end. If those events are lost for good, run ' +
  '`tollbook recover`: the log goes on under another name, and the payments that this database lacks are found on the chain';
