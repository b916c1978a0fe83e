import { createReadStream } from 'node:fs';
import type pg from 'pg';
import { CheckpointError, type NoteVerifier, openCheckpoint } from '../domain/log/checkpoint.ts';
import { ReopenedQuotes, type SkimmedEvent } from '../domain/bookkeeping/reopened-quotes.ts';
import { decodeLeaf, eventDescriptors, isEventType } from '../domain/events/event.ts';
import { type LedgerFacts, UnreadableLedgerError } from '../domain/reconcile/ledger-facts.ts';
import type { PinnedLedger } from '../domain/reconcile/report.ts';
import { readExportEnd } from '../store/export.ts';
import { readHead, readLeaves } from '../store/log.ts';
import { ReconcileError } from './reconcile-error.ts';
import { isTrailer, TreeRoots } from '../log/tree-roots.ts';
import { ExportVerifier, type GivenCheckpoint } from '../verify/verify.ts';

/** A ledger that can be read up to one size. */
export interface LedgerSource {
  /** Events to read. */
  readonly size: number;
  /** The head of that size; undefined where nothing is sealed. */
  readonly checkpoint: GivenCheckpoint | undefined;
  readonly verifier: NoteVerifier | undefined;
  /** Leaves from the first on; there may be more than `size`. */
  leaves(): AsyncGenerator<Buffer>;
}

const leavesAtOnce = 2_000;

/**
 * The ledger in the database, as its newest head of that key has it, or the head of a size. Without a key: as it stands,
 * with nothing to show that it is what it was.
 */
export async function ledgerInDatabase(
  pool: pg.Pool,
  verifier: NoteVerifier | undefined,
  asked: number | undefined,
): Promise<LedgerSource> {
  const head = verifier && (await readHead(pool, verifier.name, asked));
  if (verifier && !head)
    throw new ReconcileError(
      'no_checkpoint',
      asked === undefined
        ? `nothing is sealed under ${verifier.name} yet`
        : `no head of ${asked} events was signed under ${verifier.name}: the sizes that were are in its checkpoints`,
    );
  const { last } = await readExportEnd(pool);
  const size = head?.size ?? asked ?? last;
  if (size > last) throw tooShort(size, last);
  return {
    size,
    checkpoint: head && { source: `the head of ${size} events`, note: head.note },
    verifier,
    async *leaves() {
      for (let after = 0; after < size; after += leavesAtOnce)
        yield* await readLeaves(pool, after, Math.min(leavesAtOnce, size - after));
    },
  };
}

/** The ledger of an export: as its newest checkpoint has it, or the one of a size. */
export function ledgerInFile(
  file: string,
  checkpoints: readonly GivenCheckpoint[],
  verifier: NoteVerifier | undefined,
  asked: number | undefined,
): LedgerSource {
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
      let rest = Buffer.alloc(0);
      for await (const piece of createReadStream(file)) {
        const bytes = Buffer.concat([rest, piece as Buffer]);
        let from = 0;
        for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
          const line = bytes.subarray(from, end);
          if (!isTrailer(line)) yield line;
          from = end + 1;
        }
        rest = bytes.subarray(from);
      }
      if (rest.length > 0)
        throw new ReconcileError(
          'ledger_unreadable',
          'the export ends in the middle of a line: it was cut off',
        );
    },
  };
}

function sizeOf({ source, note }: GivenCheckpoint, verifier: NoteVerifier | undefined): number {
  if (!verifier)
    throw new ReconcileError('no_checkpoint', 'without the public key a checkpoint proves nothing');
  try {
    return openCheckpoint(note, verifier).size;
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    throw new ReconcileError('no_checkpoint', `${source}: ${error.message}`);
  }
}

/** A ledger that was looked through once: how long it is, and which quotes something is told of late. */
export interface SurveyedLedger extends LedgerSource {
  readonly isReopened: (stream: string) => boolean;
}

/** Looks through a ledger before it is folded, so that the fold can forget what is over for good. */
export async function surveyLedger(source: LedgerSource): Promise<SurveyedLedger> {
  const reopened = new ReopenedQuotes();
  let size = 0;
  for await (const leaf of source.leaves()) {
    if (size === source.size) break;
    size += 1;
    reopened.skim(endOf(leaf));
  }
  if (source.size !== Infinity && size < source.size) throw tooShort(source.size, size);
  return { ...source, size, isReopened: (stream) => reopened.has(stream) };
}

/**
 * Reads a ledger: every event is held against all before it and against the checkpoint, and what matters is folded.
 * What is wrong with it is part of the answer; only what cannot be read at all throws.
 */
export async function foldLedger(source: SurveyedLedger, facts: LedgerFacts): Promise<PinnedLedger> {
  const { checkpoint, verifier } = source;
  const check = new ExportVerifier(checkpoint ? [checkpoint] : [], verifier);
  const tree = new TreeRoots(check.sizes);
  for await (const leaf of source.leaves()) {
    if (tree.size === source.size) break;
    check.leaf(leaf);
    tree.append(leaf);
    if (isNeeded(endOf(leaf).type)) takeLeaf(facts, leaf, tree.size);
  }
  if (tree.size < source.size) throw tooShort(source.size, tree.size);
  const { fault, checkpoints } = check.finish(tree);
  const wrong = checkpoints.find(({ words }) => words !== undefined)?.words;
  return {
    size: tree.size,
    root: tree.root.toString('base64'),
    checkpoint: checkpoint?.note,
    fault: fault ?? (wrong === undefined ? undefined : { seq: tree.size, words: wrong }),
  };
}

function tooShort(size: number, last: number): ReconcileError {
  return new ReconcileError(
    'ledger_too_short',
    `${size} events are wanted, and there are ${last}: the last ones are missing`,
  );
}

const leafEnd = /"stream":"([^"]*)","type":"([a-z_]+)","version":\d+\}$/;
const longestEnd = 320;

/** What a leaf says at its end: most events are of no interest, and not worth a parse. */
function endOf(leaf: Buffer): SkimmedEvent {
  const [, stream = '', type = ''] =
    leafEnd.exec(leaf.toString('utf8', Math.max(0, leaf.length - longestEnd))) ?? [];
  return { type, stream, data: {} };
}

function isNeeded(type: string): boolean {
  return isEventType(type) && eventDescriptors[type].reconciliation !== 'none';
}

function takeLeaf(facts: LedgerFacts, leaf: Buffer, seq: number): void {
  try {
    facts.take(decodeLeaf(leaf));
  } catch (error) {
    if (error instanceof UnreadableLedgerError) throw new ReconcileError('ledger_unreadable', error.message);
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new ReconcileError('ledger_unreadable', `event ${seq} cannot be read: ${line.slice(0, 200)}`);
  }
}
