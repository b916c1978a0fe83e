import { accounts } from '../domain/bookkeeping/account.ts';
import { type Balance, Balances, type Entry } from '../domain/bookkeeping/entry.ts';
import { ReopenedQuotes, type SkimmedEvent } from '../domain/bookkeeping/reopened-quotes.ts';
import { Bookkeeper } from '../domain/bookkeeping/bookkeeper.ts';
import { decodeLeaf, type RecordedEvent } from '../domain/events/event.ts';
import { instantText, type Period } from '../domain/values/period.ts';
import { ExportError, type LedgerSource } from './source.ts';

/** The books of a period, in this order: how they open, every entry, how they close. */
export type BooksPart =
  | { readonly kind: 'opening'; readonly balances: readonly Balance[] }
  | { readonly kind: 'entry'; readonly entry: Entry }
  | { readonly kind: 'closing'; readonly balances: readonly Balance[] };

/** The books of a period. The ledger was read once already, so its errors are known before anything is written. */
export interface Books {
  readonly period: Period;
  /** The events before its end. */
  readonly events: number;
  parts(): AsyncIterable<BooksPart>;
}

/**
 * Prepares the books of a period. An event belongs to a period by its recording time, so the events of a period are adjacent
 * and the books of a past period never change.
 * @throws ExportError where the given ledger is incomplete or not readable
 */
export async function openBooks(source: LedgerSource, period: Period): Promise<Books> {
  const reopened = new ReopenedQuotes();
  let events = 0;
  let hasPassed = false;
  for await (const leaf of leavesOf(source)) {
    const { seq, at, ...event } = skim(leaf);
    hasPassed = Date.parse(at) >= period.toMs;
    if (hasPassed) break;
    events += 1;
    if (seq !== events)
      throw new ExportError(
        `event ${seq} is in the place of event ${events}: books need every event from the first on, without gaps`,
      );
    reopened.skim(event);
  }
  if (!hasPassed && !source.isCompleteTo(period.toMs))
    throw new ExportError(
      `the file has no event of ${instantText(period.toMs)} or later, so it may have been exported before the period ended: export the ledger again, or give the time of the export with --exported-at`,
    );
  return { period, events, parts: () => keepBooks(source, period, events, (digest) => reopened.has(digest)) };
}

async function* keepBooks(
  source: LedgerSource,
  period: Period,
  events: number,
  isReopened: (digest: string) => boolean,
): AsyncGenerator<BooksPart> {
  const bookkeeper = new Bookkeeper(isReopened);
  let balances = new Balances();
  let isOpen = false;
  const open = (): BooksPart => {
    isOpen = true;
    balances = openingOf(balances);
    return { kind: 'opening', balances: balances.list() };
  };
  let nowMs = 0;
  let remaining = events;
  for await (const leaf of leavesOf(source)) {
    if (remaining-- === 0) break;
    const event = decode(leaf);
    nowMs = Math.max(nowMs, Date.parse(event.at));
    if (!isOpen && nowMs >= period.fromMs) yield open();
    const entry = bookkeeper.post(event);
    if (!entry) continue;
    for (const move of entry.moves) balances.post(move);
    if (isOpen) yield { kind: 'entry', entry };
  }
  if (!isOpen) yield open();
  yield { kind: 'closing', balances: balances.list() };
}

/** Assets and liabilities are brought forward; earlier income and expenses are summed up as equity. */
function openingOf(before: Balances): Balances {
  const opening = new Balances();
  for (const { account, commodity, atoms } of before.list())
    if (atoms !== 0n) opening.add(isOfOnePeriod(account) ? accounts.opening : account, commodity, atoms);
  return opening;
}

function isOfOnePeriod(account: string): boolean {
  return account.startsWith('Income:') || account.startsWith('Expenses:');
}

async function* leavesOf(source: LedgerSource): AsyncGenerator<Buffer> {
  for await (const leaves of source.leaves()) yield* leaves;
}

type Skimmed = SkimmedEvent & { readonly seq: number; readonly at: string };

function skim(leaf: Buffer): Skimmed {
  let read: Partial<Skimmed> | null = null;
  try {
    read = JSON.parse(leaf.toString('utf8')) as Partial<Skimmed> | null;
  } catch {
    // reported below
  }
  if (typeof read?.at !== 'string' || typeof read.seq !== 'number' || typeof read.data !== 'object')
    throw new ExportError(
      'the input has a line that is not an event: give a file made by tollbook export --format jsonl',
    );
  return read as Skimmed;
}

function decode(leaf: Buffer): RecordedEvent {
  try {
    return decodeLeaf(leaf);
  } catch (error) {
    const { seq } = skim(leaf);
    throw new ExportError(`event ${seq} cannot be read: run tollbook verify to find out why`, {
      cause: error,
    });
  }
}
