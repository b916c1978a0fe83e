import type { BookedBalance } from '../../rules/reconcile/books-at-close.ts';
import type { LedgerFacts } from '../../rules/reconcile/ledger-facts.ts';
import type { Account, PeriodOfTime } from '../../rules/reconcile/reconcile.ts';
import type { PinnedLedger } from '../../rules/reconcile/report.ts';

/** A ledger, read up to a fixed size. */
export interface LedgerSource {
  /** The events that are read; Infinity for all of a file. */
  readonly size: number;
  /** Begins to read it for a period. */
  open(period: PeriodOfTime): Promise<LedgerReading>;
}

/** A ledger that is read twice, so that closed payments need not be kept. */
export interface LedgerReading {
  /** The quotes with an event after they seemed closed (see ReopenedQuotes). */
  readonly isReopened: (stream: string) => boolean;
  /**
   * Folds what matters to the period, and compares the events that it reads with the checkpoint. A wrong event is part of the answer.
   * @throws ReconcileError if the ledger cannot be read
   */
  fold(facts: LedgerFacts): Promise<PinnedLedger>;
  /**
   * Folds the same once more.
   * @throws ReconcileError if it cannot be read, or is not the one that was folded
   */
  foldAgain(facts: LedgerFacts): Promise<void>;
  /** What the books have at the end of the period; undefined if there are no books. To be asked for after the folds. */
  booked(account: Account): BookedBalance | undefined;
}
