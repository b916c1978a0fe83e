import type pg from 'pg';
import { pause } from '../../../base/runtime/pause.ts';
import { CheckpointError, type NoteVerifier, openCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { ReopenedQuotes, type SkimmedEvent } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import {
  decodeLeaf,
  eventDescriptors,
  isEventType,
  type RecordedEvent,
} from '../../../ledger/rules/event.ts';
import type { BooksAtClose } from '../../rules/reconcile/books-at-close.ts';
import { type LedgerFacts, UnreadableLedgerError } from '../../rules/reconcile/ledger-facts.ts';
import type { PinnedLedger } from '../../rules/reconcile/report.ts';
import { readExportEnd } from '../../../ledger/store/export.ts';
import { firstLeaves, readHead } from '../../../audit/store/log.ts';
import { ReconcileError } from './reconcile-error.ts';
import { leavesInFile } from '../../../audit/use-cases/log/export-file.ts';
import { TreeRoots } from '../../../audit/use-cases/log/tree-roots.ts';
import { StreamEnds } from '../../../audit/rules/stream-ends.ts';
import { ExportVerifier, type GivenCheckpoint } from '../../../audit/use-cases/verify/verify.ts';

/** Where no gateway runs, the events since its end stay unsealed. */
const longestSealingMs = 10_000;
const sealingPauseMs = 200;

/** A ledger, read up to a fixed size. */
export interface LedgerSource {
  /** Events to read. */
  readonly size: number;
  /** The signed tree head of that size; undefined if nothing is sealed. */
  readonly checkpoint: GivenCheckpoint | undefined;
  readonly verifier: NoteVerifier | undefined;
  /** All leaves in order; there may be more than `size`. */
  leaves(): AsyncGenerator<Buffer>;
}

/**
 * The ledger in the database, up to its newest tree head under that key, or up to the head of a given size. Without a key: up to
 * its current end, without any proof that it was not changed.
 */
export async function ledgerInDatabase(
  pool: pg.Pool,
  verifier: NoteVerifier | undefined,
  asked: number | undefined,
): Promise<LedgerSource> {
  const head =
    verifier &&
    (asked === undefined
      ? await sealedHead(pool, verifier.name)
      : await readHead(pool, verifier.name, asked));
  if (verifier && !head)
    throw new ReconcileError(
      'no_checkpoint',
      asked === undefined
        ? `nothing is sealed under ${verifier.name} yet: start the gateway with that key, or leave the key out`
        : `no tree head of ${asked} events was signed under ${verifier.name}: its checkpoints name the sizes that exist`,
    );
  const { last } = await readExportEnd(pool);
  const size = head?.size ?? asked ?? last;
  if (size > last) throw tooShort(size, last);
  return {
    size,
    checkpoint: head && { source: `the head of ${size} events`, note: head.note },
    verifier,
    async *leaves() {
      for await (const leaves of firstLeaves(pool, size)) yield* leaves;
    },
  };
}

/** The newest head. A gateway seals within a second: an event that was recorded just before the command is waited for. */
async function sealedHead(pool: pg.Pool, log: string) {
  const { last } = await readExportEnd(pool);
  const untilMs = performance.now() + longestSealingMs;
  for (;;) {
    const head = await readHead(pool, log);
    if (!head || head.size >= last || performance.now() > untilMs) return head;
    await pause(sealingPauseMs);
  }
}

/** The ledger in an export, up to its newest checkpoint or the one of a given size. */
export function ledgerInFile(
  file: string,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier | undefined,
  asked: number | undefined,
): LedgerSource {
  const truncated = (): Error =>
    new ReconcileError('ledger_unreadable', `${file} ends in the middle of a line: it is truncated`);
  const opened = checkpoints.map((given) => ({ given, size: sizeOf(given, verifier) }));
  const newest = opened.toSorted((a, b) => b.size - a.size);
  const chosen = asked === undefined ? newest[0] : newest.find(({ size }) => size === asked);
  if (asked !== undefined && checkpoints.length > 0 && !chosen)
    throw new ReconcileError('no_checkpoint', `none of the checkpoints is of ${asked} events`);
  return {
    size: chosen?.size ?? asked ?? Infinity,
    checkpoint: chosen?.given,
    verifier,
    async *leaves() {
      for await (const leaves of leavesInFile(file, truncated)) yield* leaves;
    },
  };
}

function sizeOf({ source, note }: GivenCheckpoint, verifier: NoteVerifier | undefined): number {
  if (!verifier)
    throw new ReconcileError(
      'no_checkpoint',
      'a checkpoint can be checked only with the public key: give it with --pubkey',
    );
  try {
    return openCheckpoint(note, verifier).size;
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    throw new ReconcileError('no_checkpoint', `${source}: ${error.message}`);
  }
}

/** A ledger after a first pass: its size, which quotes have late events, and the last event of each stream. */
export interface SurveyedLedger extends LedgerSource {
  readonly isReopened: (stream: string) => boolean;
  readonly ends: StreamEnds;
}

/** A first pass over a ledger, so that the fold can drop quotes that have no further events. */
export async function surveyLedger(source: LedgerSource): Promise<SurveyedLedger> {
  const reopened = new ReopenedQuotes();
  const ends = new StreamEnds();
  let size = 0;
  for await (const leaf of source.leaves()) {
    if (size === source.size) break;
    size += 1;
    const end = endOf(leaf);
    reopened.skim(end);
    ends.take(end.stream, leaf, size);
  }
  if (source.size !== Infinity && size < source.size) throw tooShort(source.size, size);
  return { ...source, size, isReopened: (stream) => reopened.has(stream), ends };
}

/**
 * Verifies every event against those before it and against the checkpoint, and folds those that matter. An invalid event is part
 * of the answer.
 * @throws ReconcileError if the ledger cannot be read
 */
export async function foldLedger(
  source: SurveyedLedger,
  facts: LedgerFacts,
  books: BooksAtClose,
): Promise<PinnedLedger> {
  const { checkpoint, verifier } = source;
  const check = new ExportVerifier(checkpoint ? [checkpoint] : [], verifier, (...at) =>
    source.ends.isLast(...at),
  );
  const tree = new TreeRoots(check.sizes);
  await fold(source, tree, [facts, books], (leaf) => check.leaf(leaf));
  const { fault, checkpoints } = check.finish(tree);
  const wrong = checkpoints.find(({ words }) => words !== undefined)?.words;
  return {
    size: tree.size,
    root: tree.root.toString('base64'),
    checkpoint: checkpoint?.note,
    fault: fault ?? (wrong === undefined ? undefined : { seq: tree.size, words: wrong }),
  };
}

/**
 * Folds the same ledger once more.
 * @throws ReconcileError if it cannot be read, or is not the one that was verified
 */
export async function foldAgain(
  source: SurveyedLedger,
  facts: LedgerFacts,
  { root }: PinnedLedger,
): Promise<void> {
  const tree = new TreeRoots([]);
  await fold(source, tree, [facts]);
  if (tree.root.toString('base64') === root) return;
  throw new ReconcileError(
    'ledger_unreadable',
    'events that exist already were changed while they were read. Nothing was stored: verify the ledger',
  );
}

async function fold(
  source: SurveyedLedger,
  tree: TreeRoots,
  takers: readonly EventTaker[],
  onLeaf?: (leaf: Buffer) => void,
): Promise<void> {
  for await (const leaf of source.leaves()) {
    if (tree.size === source.size) break;
    onLeaf?.(leaf);
    tree.append(leaf);
    if (isNeeded(endOf(leaf).type)) takeLeaf(takers, leaf, tree.size);
  }
  if (tree.size < source.size) throw tooShort(source.size, tree.size);
}

function tooShort(size: number, last: number): ReconcileError {
  return new ReconcileError(
    'ledger_too_short',
    `${size} events were requested, but the ledger has only ${last}: the last ones are missing`,
  );
}

const leafEnd = /"stream":"([^"]*)","type":"([a-z_]+)","version":\d+\}$/;
const longestEnd = 320;

/** Type and stream, from the end of a leaf: most events are irrelevant here, so they are not parsed. */
function endOf(leaf: Buffer): SkimmedEvent {
  const [, stream = '', type = ''] =
    leafEnd.exec(leaf.toString('utf8', Math.max(0, leaf.length - longestEnd))) ?? [];
  return { type, stream, data: {} };
}

function isNeeded(type: string): boolean {
  return isEventType(type) && eventDescriptors[type].reconciliation !== 'none';
}

interface EventTaker {
  take(event: RecordedEvent): void;
}

function takeLeaf(takers: readonly EventTaker[], leaf: Buffer, seq: number): void {
  try {
    const event = decodeLeaf(leaf);
    for (const taker of takers) taker.take(event);
  } catch (error) {
    if (error instanceof UnreadableLedgerError) throw new ReconcileError('ledger_unreadable', error.message);
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new ReconcileError('ledger_unreadable', `event ${seq} cannot be read: ${line.slice(0, 200)}`);
  }
}
