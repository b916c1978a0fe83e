import type pg from 'pg';
import { pause } from '../../../base/runtime/pause.ts';
import { CheckpointError, type NoteVerifier, openCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { ReopenedQuotes } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import { type BookedBalance, BooksAtClose } from '../../rules/reconcile/books-at-close.ts';
import type { LedgerFacts } from '../../rules/reconcile/ledger-facts.ts';
import type { Account, PeriodOfTime } from '../../rules/reconcile/reconcile.ts';
import type { PinnedLedger } from '../../rules/reconcile/report.ts';
import { readExportEnd } from '../../../ledger/store/export.ts';
import { readHead } from '../../../audit/store/log.ts';
import { changedMeanwhile, endOf, type EventTaker, isNeeded, takeLeaf, tooShort } from './leaves.ts';
import type { LedgerReading, LedgerSource } from './ledger-reading.ts';
import { openPeriod } from './period-ledger.ts';
import { ReconcileError } from './reconcile-error.ts';
import { leavesInFile } from '../../../audit/use-cases/log/export-file.ts';
import { TreeRoots } from '../../../audit/use-cases/log/tree-roots.ts';
import { StreamEnds } from '../../../audit/rules/stream-ends.ts';
import { ExportVerifier, type GivenCheckpoint } from '../../../audit/use-cases/verify/verify.ts';

/** Where no gateway runs, the events since its end stay unsealed. */
const longestSealingMs = 10_000;
const sealingPauseMs = 200;

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
  const sealed = head && verifier && { note: head.note, verifier };
  return { size, open: (period) => openPeriod(pool, period, size, sealed) };
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
  const opened = checkpoints.map((given) => ({ given, size: sizeOf(given, verifier) }));
  const newest = opened.toSorted((a, b) => b.size - a.size);
  const chosen = asked === undefined ? newest[0] : newest.find(({ size }) => size === asked);
  if (asked !== undefined && checkpoints.length > 0 && !chosen)
    throw new ReconcileError('no_checkpoint', `none of the checkpoints is of ${asked} events`);
  const ledger = {
    size: chosen?.size ?? asked ?? Infinity,
    checkpoint: chosen?.given,
    verifier,
    async *leaves() {
      for await (const leaves of leavesInFile(file)) yield* leaves;
    },
  };
  return { size: ledger.size, open: (period) => WholeLedger.open(ledger, period) };
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

interface LedgerFile {
  /** Events to read. */
  readonly size: number;
  /** The signed tree head of that size; undefined if none was given. */
  readonly checkpoint: GivenCheckpoint | undefined;
  readonly verifier: NoteVerifier | undefined;
  /** All leaves in order; there may be more than `size`. */
  leaves(): AsyncGenerator<Buffer>;
}

/**
 * All events of a ledger, of which nothing else is known. Each is verified against those before it and against the checkpoint, as `verify`
 * does.
 */
class WholeLedger implements LedgerReading {
  readonly isReopened: (stream: string) => boolean;
  readonly #file: LedgerFile;
  readonly #ends: StreamEnds;
  readonly #books: BooksAtClose;
  #root: Buffer | undefined;

  private constructor(file: LedgerFile, period: PeriodOfTime, reopened: ReopenedQuotes, ends: StreamEnds) {
    this.#file = file;
    this.#ends = ends;
    this.isReopened = (stream) => reopened.has(stream);
    this.#books = new BooksAtClose(period, this.isReopened);
  }

  /** A first pass, so that the folds can drop quotes that have no further events. */
  static async open(file: LedgerFile, period: PeriodOfTime): Promise<WholeLedger> {
    const reopened = new ReopenedQuotes();
    const ends = new StreamEnds();
    let size = 0;
    for await (const leaf of file.leaves()) {
      if (size === file.size) break;
      size += 1;
      const end = endOf(leaf);
      reopened.skim(end);
      ends.take(end.stream, leaf, size);
    }
    if (file.size !== Infinity && size < file.size) throw tooShort(file.size, size);
    return new WholeLedger({ ...file, size }, period, reopened, ends);
  }

  async fold(facts: LedgerFacts): Promise<PinnedLedger> {
    const { checkpoint, verifier } = this.#file;
    const check = new ExportVerifier(checkpoint ? [checkpoint] : [], verifier, (...at) =>
      this.#ends.isLast(...at),
    );
    const tree = new TreeRoots(check.sizes);
    await this.#fold(tree, [facts, this.#books], (leaf) => check.leaf(leaf));
    this.#root = tree.root;
    const { fault, checkpoints } = check.finish(tree);
    const wrong = checkpoints.find(({ words }) => words !== undefined)?.words;
    return {
      size: tree.size,
      root: tree.root.toString('base64'),
      checkpoint: checkpoint?.note,
      fault: fault ?? (wrong === undefined ? undefined : { seq: tree.size, words: wrong }),
    };
  }

  async foldAgain(facts: LedgerFacts): Promise<void> {
    const tree = new TreeRoots([]);
    await this.#fold(tree, [facts]);
    if (this.#root?.equals(tree.root) !== true) throw changedMeanwhile();
  }

  booked(account: Account): BookedBalance | undefined {
    return this.#books.of(account);
  }

  async #fold(
    tree: TreeRoots,
    takers: readonly EventTaker[],
    onLeaf?: (leaf: Buffer) => void,
  ): Promise<void> {
    const { size } = this.#file;
    for await (const leaf of this.#file.leaves()) {
      if (tree.size === size) break;
      onLeaf?.(leaf);
      tree.append(leaf);
      if (isNeeded(endOf(leaf).type)) takeLeaf(takers, leaf, tree.size);
    }
    if (tree.size < size) throw tooShort(size, tree.size);
  }
}
