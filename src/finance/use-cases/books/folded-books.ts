import type { AgedItem } from '../../../audit/rules/bookkeeping/aging.ts';
import { Bookkeeper } from '../../../audit/rules/bookkeeping/bookkeeper.ts';
import { currencyIn } from '../../../audit/rules/bookkeeping/commodity.ts';
import { ReopenedQuotes, type SkimmedEvent } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import { Balances } from '../../../base/values/entry.ts';
import { instantText, type Period } from '../../../base/values/period.ts';
import { decodeLeaf, type EventData, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { creditCurrency, type KeptBooks, type KeptPart } from './kept-books.ts';
import { batchOf, PayoutBatches } from './payout-batches.ts';
import { ExportError, type LedgerSource } from './source.ts';

export interface FoldedBooks extends KeptBooks {
  /** The payments whose settlement has no outcome at the end of the period, which no balance has. Call it once all parts were read. */
  openSettlements(): AgedItem[];
}

/**
 * Books from the events of a ledger alone: all are read twice, from the first to the end of the period. This is how a file is read, which
 * has no postings.
 * @param given the currency of credit, for a ledger that does not say it
 * @throws ExportError if the ledger is incomplete or not readable, or says another currency
 */
export async function foldBooks(
  source: LedgerSource,
  period: Period,
  given: string | undefined,
): Promise<FoldedBooks> {
  const reopened = new ReopenedQuotes();
  const batches = new PayoutBatches();
  let said: string | undefined;
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
    if (event.type === 'operator_sweep_recorded')
      batches.take(event.data as EventData<'operator_sweep_recorded'>);
    said ??= currencyIn(event);
  }
  if (!hasPassed && !source.isCompleteTo(period.toMs))
    throw new ExportError(
      `the file has no event of ${instantText(period.toMs)} or later, so it may have been exported before the period ended: export the ledger again, or give the time of the export with --exported-at`,
    );
  const currency = creditCurrency(said, given);
  let bookkeeper: Bookkeeper | undefined;
  return {
    events,
    openSettlements: () => bookkeeper?.openSettlements() ?? [],
    async *keep(): AsyncGenerator<KeptPart> {
      const keeper = new Bookkeeper((digest) => reopened.has(digest), currency);
      bookkeeper = keeper;
      const balances = new Balances();
      let isOpen = false;
      let nowMs = 0;
      let remaining = events;
      for await (const leaf of leavesOf(source)) {
        if (remaining-- === 0) break;
        const event = decode(leaf);
        nowMs = Math.max(nowMs, Date.parse(event.at));
        if (!isOpen && nowMs >= period.fromMs) {
          isOpen = true;
          yield { kind: 'balances', balances };
        }
        const entry = keeper.post(event);
        if (!entry) continue;
        if (isOpen) yield { kind: 'entry', entry, payoutBatch: batchOf(entry, batches) };
        else for (const move of entry.moves) balances.post(move);
      }
      if (!isOpen) yield { kind: 'balances', balances };
    },
  };
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
