import type { Period } from '../../../base/values/period.ts';
import { type ClosedPeriod, periodStream, type PeriodRefusalCode } from '../../rules/periods/periods.ts';
import { type PeriodLedger, type Refused, refusedBy, superseded } from './close-period.ts';
import { readPeriods } from './read-periods.ts';

type Moved = { readonly kind: 'recorded' } | Refused<PeriodRefusalCode | 'superseded'>;

/** Records that another person compared a closed period with its reports. `reconciled`: with the chains too. */
export async function reviewPeriod(
  { pool, lane }: PeriodLedger,
  { period, close }: ClosedPeriod,
  { operator, reconciled }: { readonly operator: string; readonly reconciled: boolean },
): Promise<Moved> {
  const { periods, version } = await readPeriods(pool);
  const wrong = periods.refuseReview(period, operator);
  if (wrong) return refusedBy(wrong);
  const data = { ...ends(period), report_sha256: close.data.report_sha256, reconciled, operator };
  const { outcome } = await lane.append({
    stream: periodStream,
    expect: version,
    events: [{ type: 'operator_period_reviewed', data }],
  });
  return outcome === 'ok' ? { kind: 'recorded' } : superseded();
}

/** Records that a close does not hold any more, and why. */
export async function reopenPeriod(
  { pool, lane }: PeriodLedger,
  period: Period,
  { operator, reason }: { readonly operator: string; readonly reason: string },
): Promise<Moved> {
  const { periods, version } = await readPeriods(pool);
  const wrong = periods.refuseReopening(period);
  if (wrong) return refusedBy(wrong);
  const { outcome } = await lane.append({
    stream: periodStream,
    expect: version,
    events: [{ type: 'operator_period_reopened', data: { ...ends(period), reason, operator } }],
  });
  return outcome === 'ok' ? { kind: 'recorded' } : superseded();
}

function ends({ fromMs, toMs }: Period) {
  return { from_ms: fromMs, to_ms: toMs };
}
