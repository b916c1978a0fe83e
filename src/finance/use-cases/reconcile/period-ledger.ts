import { createHash } from 'node:crypto';
import type pg from 'pg';
import { readBooks } from '../../../audit/use-cases/projections/book-model.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import { CreditOrder } from '../../../accounts/rules/credit/credit-parts.ts';
import { type BooksState, Payees } from '../../../audit/rules/bookkeeping/books-state.ts';
import { Commodities } from '../../../audit/rules/bookkeeping/commodity.ts';
import { ReopenedQuotes } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import { readLogTip } from '../../../audit/store/log.ts';
import { provenTiles, rootOfFirst, TileCache } from '../../../audit/use-cases/log/prove.ts';
import type { Balance } from '../../../base/values/entry.ts';
import { chunksOf } from '../../../base/values/chunks.ts';
import {
  CheckpointError,
  type NoteVerifier,
  openCheckpoint,
  type TreeHead,
} from '../../../base/values/log/checkpoint.ts';
import { leafHash } from '../../../base/values/log/merkle.ts';
import { tileWidth } from '../../../base/values/log/tiles.ts';
import { readBalances } from '../../../ledger/store/book-rows.ts';
import { queriesOn } from '../../../ledger/store/database.ts';
import { type LedgerPart, readLastBefore } from '../../../ledger/store/export.ts';
import { type RowSnapshot, withStoredRows } from '../../../ledger/store/stored-rows.ts';
import { type BookedBalance, bookedOn, BooksAtClose } from '../../rules/reconcile/books-at-close.ts';
import type { LedgerFacts } from '../../rules/reconcile/ledger-facts.ts';
import { type Account, addTo, type PeriodOfTime } from '../../rules/reconcile/reconcile.ts';
import type { PinnedLedger } from '../../rules/reconcile/report.ts';
import {
  type OutsideEvents,
  type PlacedLeaf,
  readOutside,
  readPart,
  readPlaced,
  readSingles,
  reconciledTypes,
  timeOf,
} from '../../store/period-events.ts';
import { changedMeanwhile, endOf, isNeeded, takeLeaf, tooShort } from './leaves.ts';
import type { LedgerReading } from './ledger-reading.ts';
import { ReconcileError } from './reconcile-error.ts';

/** A transfer may be recorded on another day than that of its block. */
const marginMs = 86_400_000;
/** A payout is recorded once its block is final and the node answers. */
const payoutMarginMs = 31 * marginMs;
const leavesAtOnce = 2_000;

/** The signed head of a ledger's size. */
export interface SignedHead {
  readonly note: string;
  readonly verifier: NoteVerifier;
}

/** What of a ledger is read for a period. */
interface Selection {
  /** The period with a day on both sides: of these all events are read. */
  readonly part: LedgerPart;
  /** The events before and after it that are read as well, in order. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** An event before which others of its stream are missing. */
  readonly gap: number | undefined;
  /** The books of the whole ledger at the beginning of the period. */
  readonly opening: readonly Balance[];
  /** The payees that the ledger's first `size` events name, and all tokens. */
  readonly known: BooksState;
}

/**
 * Reads of a ledger in its database what matters to a period: the period's events, all events of its payments, those of payments that were open
 * or that something befell since, and the books at its beginning. What is read costs the same however old the ledger is.
 *
 * Each event that is read is compared with the signed head, if one is given. That nothing is missing outside of the period, and that the
 * opening of the books is that of the events, is what `verify` says.
 * @throws ReconcileError if the read models have no books
 */
export async function openPeriod(
  pool: pg.Pool,
  period: PeriodOfTime,
  size: number,
  head: SignedHead | undefined,
): Promise<LedgerReading> {
  await projectToHead({ pool, db: queriesOn(pool) });
  const selection = await withStoredRows(pool, (snapshot) => select(snapshot, period, size));
  const reopened = new ReopenedQuotes();
  for await (const leaves of selectedLeaves(pool, selection, reconciledTypes))
    for (const { leaf } of leaves) reopened.skim(endOf(leaf));
  return new PeriodLedger({ pool, period, size, head, selection }, reopened);
}

async function select(snapshot: RowSnapshot, { from, to }: PeriodOfTime, size: number): Promise<Selection> {
  if (!snapshot.hasPostings)
    throw new ReconcileError(
      'no_books',
      'the read models have no postings yet: a gateway of this version adds them, and so does `tollbook projections rebuild`. Nothing was stored',
    );
  const { client } = snapshot;
  const lastBefore = (ms: number): Promise<number> => readLastBefore(client, ms);
  const after = Math.min(await lastBefore(Date.parse(from) - marginMs), size);
  const last = Math.min(await lastBefore(Date.parse(to) + marginMs), size);
  const part = { after, last };
  const outside = await readOutside(snapshot, part, size);
  const payoutsUntil = await lastBefore(Date.parse(to) + payoutMarginMs);
  const singles = await readSingles(snapshot, part, size, payoutsUntil);
  const seqs = [...new Set([...outside.flatMap((one) => one.seqs), ...singles])].toSorted((a, b) => a - b);
  const nothing = { past: [], used: new Map(), next: [] };
  const { state } = await readBooks(client, snapshot.generation, nothing);
  const known = {
    ...state,
    payees: new Payees([...state.payees.list()].filter(([, since]) => since <= size)),
  };
  const tokens = new Map(state.commodities.list());
  const balances = await readOpening(snapshot, from, size);
  const opening = balances.flatMap(({ account, commodity: key, atoms }) => {
    const commodity = tokens.get(key);
    return commodity ? [{ account, commodity, atoms: BigInt(atoms) }] : [];
  });
  return {
    part,
    before: seqs.filter((seq) => seq <= after),
    after: seqs.filter((seq) => seq > after),
    gap: outside.map(gapIn).find((seq) => seq !== undefined),
    opening,
    known,
  };
}

/** The books of tokens when the period began, or after the last event where that was before. */
async function readOpening(snapshot: RowSnapshot, from: string, size: number) {
  const { client, generation } = snapshot;
  const before = await readLastBefore(client, Date.parse(from));
  const last = Math.min(before, size);
  const at = last < before ? await timeOf(snapshot, last) : from;
  const day = (at ?? from).slice(0, 10);
  return readBalances(client, generation, day, await readLastBefore(client, Date.parse(day)), last);
}

/** The first event before which one of its stream is missing. */
function gapIn({ lowest, highest, seqs, versions }: OutsideEvents): number | undefined {
  const at = versions.findIndex((version, index) => {
    const previous = index === 0 ? 0 : (versions[index - 1] ?? 0);
    const isNext = version === previous + 1;
    const isAfter = lowest !== null && previous === lowest - 1 && version === (highest ?? 0) + 1;
    return !isNext && !isAfter;
  });
  return at === -1 ? undefined : seqs[at];
}

async function* selectedLeaves(
  pool: pg.Pool,
  { part, before, after }: Selection,
  types: readonly string[] | undefined,
): AsyncGenerator<readonly PlacedLeaf[]> {
  for (const seqs of chunksOf(before, leavesAtOnce)) yield await readPlaced(pool, seqs);
  for (let at = part.after; at < part.last; at += leavesAtOnce) {
    const page = { after: at, last: Math.min(at + leavesAtOnce, part.last) };
    const leaves = await readPart(pool, page, types);
    if (!types && leaves.length < page.last - page.after)
      throw tooShort(page.last, page.after + leaves.length);
    yield leaves;
  }
  for (const seqs of chunksOf(after, leavesAtOnce)) yield await readPlaced(pool, seqs);
}

interface OpenedPeriod {
  readonly pool: pg.Pool;
  readonly period: PeriodOfTime;
  /** Of the ledger. */
  readonly size: number;
  readonly head: SignedHead | undefined;
  readonly selection: Selection;
}

class PeriodLedger implements LedgerReading {
  readonly isReopened: (stream: string) => boolean;
  readonly #of: OpenedPeriod;
  /** What the streams that are read have brought to the books before the period, and up to its end. */
  readonly #before: BooksAtClose;
  readonly #close: BooksAtClose;
  #digest: string | undefined;

  constructor(of: OpenedPeriod, reopened: ReopenedQuotes) {
    this.#of = of;
    this.isReopened = (stream) => reopened.has(stream);
    const { commodities, payees } = of.selection.known;
    const known = (): BooksState => ({
      commodities: new Commodities(commodities.list()),
      payees: new Payees(payees.list()),
      credit: new CreditOrder(),
    });
    this.#before = new BooksAtClose({ to: of.period.from }, this.isReopened, known());
    this.#close = new BooksAtClose(of.period, this.isReopened, known());
  }

  async fold(facts: LedgerFacts): Promise<PinnedLedger> {
    const { pool, size, head, selection } = this.#of;
    const seals = await SealComparison.open(pool, size, head);
    const { gap } = selection;
    if (gap !== undefined) seals.note(gap, 'events of its stream before it are missing');
    const digest = createHash('sha256');
    for await (const leaves of selectedLeaves(pool, selection, undefined)) {
      await seals.compare(leaves);
      for (const { seq, leaf } of leaves)
        if (isNeeded(endOf(leaf).type)) {
          digest.update(leaf);
          takeLeaf([facts, this.#before, this.#close], leaf, seq);
        }
    }
    this.#digest = digest.digest('hex');
    this.#complete(facts);
    const { root, fault } = seals;
    return { size, root: root.toString('base64'), checkpoint: head?.note, fault };
  }

  async foldAgain(facts: LedgerFacts): Promise<void> {
    const { pool, selection } = this.#of;
    const digest = createHash('sha256');
    for await (const leaves of selectedLeaves(pool, selection, reconciledTypes))
      for (const { seq, leaf } of leaves)
        if (isNeeded(endOf(leaf).type)) {
          digest.update(leaf);
          takeLeaf([facts], leaf, seq);
        }
    if (digest.digest('hex') !== this.#digest) throw changedMeanwhile();
    this.#complete(facts);
  }

  booked(account: Account): BookedBalance | undefined {
    const [others, own] = [this.#others(account), this.#close.of(account)];
    if (!others || !own) return undefined;
    return {
      chain: others.chain + own.chain,
      unconfirmed: others.unconfirmed + own.unconfirmed,
      treasury: others.treasury + own.treasury,
    };
  }

  /** Adds what the streams that are not read have brought: all of it before the period. */
  #complete(facts: LedgerFacts): void {
    const { commodities, payees } = this.#of.selection.known;
    const tokens = commodities.list().flatMap(([key, commodity]) => {
      const { network, asset, symbol, decimals } = commodity;
      const isToken = key === `${network}/${asset}/${decimals}`;
      return isToken && network !== undefined && asset !== undefined
        ? { network, asset, symbol, decimals }
        : [];
    });
    for (const token of tokens)
      for (const [payee] of payees.list()) {
        const [network, payTo = ''] = payee.split('/');
        if (network === token.network) facts.noteToken({ ...token, pay_to: payTo });
      }
    for (const account of facts.accounts.values()) {
      const { chain = 0n, unconfirmed = 0n, treasury = 0n } = this.#others(account) ?? {};
      addTo(facts.opening, account, chain + unconfirmed + treasury);
    }
  }

  #others(account: Account): BookedBalance | undefined {
    const own = this.#before.of(account);
    if (!own) return undefined;
    const all = bookedOn(account, this.#of.selection.opening);
    return {
      chain: all.chain - own.chain,
      unconfirmed: all.unconfirmed - own.unconfirmed,
      treasury: all.treasury - own.treasury,
    };
  }
}

/** Compares events with the signed head of the ledger: the tile that has the hash of each must lead to its root. */
class SealComparison {
  readonly #pool: pg.Pool;
  /** Undefined: there is nothing to compare with. */
  readonly #head: Pick<TreeHead, 'size' | 'root'> | undefined;
  readonly #tiles = new TileCache();
  readonly root: Buffer;
  #fault: PinnedLedger['fault'];

  private constructor(pool: pg.Pool, root: Buffer, head: Pick<TreeHead, 'size' | 'root'> | undefined) {
    this.#pool = pool;
    this.root = root;
    this.#head = head;
  }

  static async open(pool: pg.Pool, size: number, head: SignedHead | undefined): Promise<SealComparison> {
    if (!head) {
      const tip = await readLogTip(pool, '');
      return new SealComparison(pool, await rootOfFirst(pool, size, tip), undefined);
    }
    try {
      const { root } = openCheckpoint(head.note, head.verifier);
      return new SealComparison(pool, root, { size, root });
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      const comparison = new SealComparison(pool, Buffer.alloc(0), undefined);
      comparison.note(size, error.message);
      return comparison;
    }
  }

  /** The first event that is wrong. */
  get fault(): PinnedLedger['fault'] {
    return this.#fault;
  }

  note(seq: number, words: string): void {
    if (!this.#fault || seq < this.#fault.seq) this.#fault = { seq, words };
  }

  async compare(leaves: readonly PlacedLeaf[]): Promise<void> {
    const [first] = leaves;
    if (!this.#head || !first) return;
    const tiles = new Set(leaves.map(({ seq }) => tileOf(seq)));
    let proven: Awaited<ReturnType<typeof provenTiles>>;
    try {
      proven = await provenTiles(this.#pool, this.#head, [...tiles], this.#tiles);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return this.note(first.seq, `the log is damaged: ${error.message}`);
    }
    for (const { seq, leaf } of leaves) {
      const sealed = proven.get(tileOf(seq))?.[(seq - 1) % tileWidth];
      if (!sealed)
        this.note(seq, 'its place in the log does not lead to the signed root: the log was changed');
      else if (!sealed.equals(leafHash(leaf)))
        this.note(
          seq,
          'its bytes differ from the sealed ones: the event was changed, replaced or moved after sealing',
        );
    }
  }
}

function tileOf(seq: number): number {
  return Math.floor((seq - 1) / tileWidth);
}
