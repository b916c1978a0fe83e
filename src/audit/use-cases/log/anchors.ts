import type pg from 'pg';
import {
  type NoteSigner,
  type NoteVerifier,
  openCheckpoint,
  readCheckpoint,
  type TreeHead,
  verifierOf,
} from '../../../base/values/log/checkpoint.ts';
import { signerIn } from '../../../base/values/log/log-generation.ts';
import type { Anchor, AnchorReading } from '../../peers/anchors/anchor.ts';
import { scheduleAnchor, readLogGeneration, recordAnchor, readLogTip, takeAnchor } from '../../store/log.ts';
import type { LedgerHalt } from '../../../ledger/store/halt.ts';
import {
  compareHead,
  differenceOf,
  findDifference,
  type HeadComparison,
  type HeadDifference,
  type KnownHead,
} from './history.ts';
import { sealNext } from './seal.ts';

/** The log's key under its present name. */
export async function currentSigner(pool: pg.Pool, first: NoteSigner): Promise<NoteSigner> {
  return signerIn(first, (await readLogGeneration(pool)).generation);
}

/** Of the log's key under its present name. */
export async function currentVerifier(pool: pg.Pool, first: NoteSigner): Promise<NoteVerifier> {
  return verifierOf(await currentSigner(pool, first));
}

/** After a failure, unless the anchor is due earlier. */
const retryMs = 60_000;

/** The outcome of publishing to an anchor. */
export type PublicationResult =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'done'; readonly size: number }
  | { readonly kind: 'failed'; readonly size: number; readonly cause: string }
  /** The anchor holds something other than a checkpoint of this log: it stays unchanged until an operator looks at it. */
  | { readonly kind: 'unverifiable'; readonly size: number; readonly cause: string }
  /** The anchor holds a head that the database contradicts: nothing was published, and the ledger must be halted. */
  | { readonly kind: 'inconsistent'; readonly halt: LedgerHalt };

/**
 * Publishes the newest committed tree head to an anchor that is due and lacks it. One process at a time does so. An anchor is
 * only extended: by a larger tree whose beginning is the anchored one. Content that cannot be verified stays unchanged.
 * @param first the signer of the log's first generation
 */
export async function publishNewestHead(
  pool: pg.Pool,
  first: NoteSigner,
  anchor: Anchor,
  known?: KnownHead,
): Promise<PublicationResult> {
  const signer = await currentSigner(pool, first);
  const origin = signer.name;
  const head = await takeAnchor(pool, origin, anchor.name, anchor.everyMs);
  if (!head) return { kind: 'nothing' };
  const { size } = head;
  const tree: TreeHead = { origin, size, root: readCheckpoint(head.note).root };
  const forgotten = await known?.learn(pool, tree);
  if (forgotten) return { kind: 'inconsistent', halt: ownHalt(forgotten, origin) };
  const reading = await readAnchor(anchor, origin);
  const newest = openReading(reading, verifierOf(signer));
  if (newest.kind === 'unreadable') {
    const failed = await retryLater(pool, anchor, tree, newest.cause);
    return reading.kind === 'failed' ? failed : { ...failed, kind: 'unverifiable' };
  }
  if (newest.kind === 'head') {
    const difference = await findDifference(pool, newest.head);
    if (difference) return { kind: 'inconsistent', halt: haltOf(difference, placeOf(anchor)) };
  }
  if (newest.kind === 'none' || newest.head.size < size) {
    const answer = await anchor.publish({ ...head, ...tree }, reading);
    if (answer.kind === 'failed') return retryLater(pool, anchor, tree, answer.cause);
  }
  await recordAnchor(pool, origin, anchor.name, size);
  return { kind: 'done', size };
}

async function retryLater(
  pool: pg.Pool,
  anchor: Anchor,
  { origin, size }: TreeHead,
  cause: string,
): Promise<Extract<PublicationResult, { kind: 'failed' }>> {
  await scheduleAnchor(pool, origin, anchor.name, retryMs);
  return { kind: 'failed', size, cause };
}

/** A head of an earlier generation, which this process remembers: an operator has recovered the ledger while it did not run. */
function ownHalt(forgotten: HeadDifference, origin: string): LedgerHalt {
  const halt = haltOf(forgotten, 'the memory of a gateway');
  return forgotten.head.origin === origin ? halt : { ...halt, isOver: true };
}

function haltOf(difference: HeadDifference, place: string): LedgerHalt {
  const foundSeq = difference.kind === 'ahead' ? difference.seq : undefined;
  return { reason: differenceOf(difference, place), knownSeq: difference.head.size, foundSeq };
}

/** Whether the database contradicts a head that this process has sealed or published, or the newest head of an anchor. */
export async function findInconsistency(
  pool: pg.Pool,
  first: NoteSigner,
  known: KnownHead,
  anchors: readonly Anchor[],
): Promise<LedgerHalt | undefined> {
  const forgotten = await known.check(pool);
  const verifier = await currentVerifier(pool, first);
  if (forgotten) return ownHalt(forgotten, verifier.name);
  for (const anchor of anchors) {
    const reading = await readNewest(anchor, verifier);
    const difference = reading.kind === 'head' ? await findDifference(pool, reading.head) : undefined;
    if (difference) return haltOf(difference, placeOf(anchor));
  }
  return undefined;
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
  known?: KnownHead,
): Promise<(PublicationResult & { readonly anchor: string })[]> {
  const signer = await currentSigner(pool, first);
  // events that other processes record meanwhile are theirs to publish
  const { seq, ...from } = await readLogTip(pool, signer.name);
  for (let { size } = from, grown = true; size < seq && grown;) {
    await sealNext(pool, first, { everyMs: 0, everyEvents }, known);
    const tip = await readLogTip(pool, signer.name);
    grown = tip.size > size;
    size = tip.size;
  }
  return Promise.all(
    anchors
      .filter(({ isFree }) => isFree)
      .map(async (anchor) => {
        await scheduleAnchor(pool, signer.name, anchor.name, 0);
        return { ...(await publishNewestHead(pool, first, anchor, known)), anchor: anchor.name };
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
  | HeadComparison
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
    compared.push({ anchor, ...(reading.kind === 'head' ? await compareHead(pool, reading.head) : reading) });
  }
  return compared;
}

type NewestReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly cause: string }
  | { readonly kind: 'head'; readonly head: TreeHead };

/** The newest checkpoint of an anchor under the name of the verifier's key. */
async function readNewest(anchor: Anchor, verifier: NoteVerifier): Promise<NewestReading> {
  return openReading(await readAnchor(anchor, verifier.name), verifier);
}

async function readAnchor(anchor: Anchor, origin: string): Promise<AnchorReading> {
  return (await anchor.newest?.(origin)) ?? { kind: 'none' };
}

function openReading(reading: AnchorReading, verifier: NoteVerifier): NewestReading {
  if (reading.kind === 'failed') return { kind: 'unreadable', cause: reading.cause };
  if (reading.kind === 'none') return { kind: 'none' };
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

/**
 * Compares the database with the newest checkpoint of every readable anchor. Returns the anchors that could not be read.
 * @param first the signer of the log's first generation
 * @throws ForgottenHistoryError if the database is older than a checkpoint, has another history, or was given up
 */
export async function checkAnchors(
  pool: pg.Pool,
  first: NoteSigner,
  anchors: readonly Anchor[],
): Promise<UnreadableAnchor[]> {
  const { generation } = await readLogGeneration(pool);
  const unreadable: UnreadableAnchor[] = [];
  const verifierIn = (number: number): NoteVerifier => verifierOf(signerIn(first, number));
  for (const compared of await compareAnchors(pool, verifierIn(generation), anchors)) {
    const { anchor } = compared;
    if (compared.kind === 'unreadable') unreadable.push({ anchor: anchor.name, cause: compared.cause });
    if (compared.kind === 'ahead' || compared.kind === 'other_history')
      throw new ForgottenHistoryError(`${differenceText(compared)}. ${recoveryAdvice}`);
    const next = await readNewest(anchor, verifierIn(generation + 1));
    if (next.kind === 'head')
      throw new ForgottenHistoryError(
        `${placeOf(anchor)} holds a checkpoint of ${next.head.origin}: the ledger was recovered into another ` +
          'database, and this one was given up. Start the gateway on the recovered database',
      );
  }
  return unreadable;
}

/** How the database differs from an anchor's checkpoint. */
export function differenceText(
  compared: Extract<AnchorComparison, { kind: 'ahead' | 'other_history' }>,
): string {
  return differenceOf(compared, placeOf(compared.anchor));
}

/** How messages name an anchor. */
export function placeOf(anchor: Anchor): string {
  return `${anchor.place} (${anchor.name})`;
}

const recoveryAdvice =
  'Restore a newer backup, or replay the write-ahead log to its end. If those events are lost for good, run ' +
  '`tollbook recover`: the log continues under another name, and the payments that this database lacks are found on the chain';
