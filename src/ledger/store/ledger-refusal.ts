import { isDatabaseLoss } from './database.ts';
import { LaneClosedError } from './flusher.ts';
import { LedgerInconsistentError } from './halt.ts';
import { LaneFullError } from './lane.ts';

/** The code of an append or a read that failed because the ledger takes none now; undefined for any other error. */
export function ledgerRefusalOf(error: unknown): 'ledger_inconsistent' | 'ledger_unavailable' | undefined {
  if (error instanceof LedgerInconsistentError) return 'ledger_inconsistent';
  const isUnavailable =
    error instanceof LaneFullError ||
    error instanceof LaneClosedError ||
    (error instanceof Error && isDatabaseLoss(error));
  return isUnavailable ? 'ledger_unavailable' : undefined;
}
