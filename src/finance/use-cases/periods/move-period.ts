import type { Period } from '../../../base/values/period.ts';
import type { ClosedPeriod, PeriodRefusalCode } from '../../rules/periods/periods.ts';
import { type Refused, recordInPeriods, refusedBy } from './close-period.ts';
import { readPeriods } from './read-periods.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

type Moved = { readonly kind: 'recorded' } | Refused<PeriodRefusalCode | 'superseded'>;

/** Records that another person compared a closed period with its reports. `reconciled`: with the chains too. */
export async function reviewPeriod(
  { pool, lane }: LedgerWriter,
  { period, close }: ClosedPeriod,
  { operator, reconciled }: { readonly operator: string; readonly reconciled: boolean },
): Promise<Moved> {
  const { periods, version } = await readPeriods(pool);
  const wrong = periods.refuseReview(period, operator);
  if (wrong) return refusedBy(wrong);
  const data = { ...ends(period), report_sha256: close.data.report_sha256, reconciled, operator };
  return recordInPeriods(lane, version, { type: 'operator_period_reviewed', data }, { kind: 'recorded' });
}

/** Records that a close does not hold any more, and why. */
export async function reopenPeriod(
  { pool, lane }: LedgerWriter,
  period: Period,
  { operator, reason }: { readonly operator: string; readonly reason: string },
): Promise<Moved> {
  const { periods, version } = await readPeriods(pool);
  const wrong = periods.refuseReopening(period);
  if (wrong) return refusedBy(wrong);
  const data = { ...ends(period), reason, operator };
  return recordInPeriods(lane, version, { type: 'operator_period_reopened', data }, { kind: 'recorded' });
}

function ends({ fromMs, toMs }: Period) {
  return { from_ms: fromMs, to_ms: toMs };
}
