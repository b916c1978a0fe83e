import { openDatabaseSource } from '../../src/finance/use-cases/books/source.ts';
import type { ClosedPeriod } from '../../src/finance/rules/periods/periods.ts';
import type { ReportJson } from '../../src/finance/rules/reconcile/report.ts';
import type { Period } from '../../src/base/values/period.ts';
import { closePeriod } from '../../src/finance/use-cases/periods/close-period.ts';
import { comparePeriod } from '../../src/finance/use-cases/periods/compare-period.ts';
import { readPeriods } from '../../src/finance/use-cases/periods/read-periods.ts';
import { reviewPeriod } from '../../src/finance/use-cases/periods/move-period.ts';
import type { YearLedger } from './ledger.ts';
import { operators } from './world.ts';

const [closer, reviewer] = operators;

/** One person closes a period, and another one reviews it. The person who closed it may not. */
export async function closeByTwo(ledger: YearLedger, period: Period, report: ReportJson): Promise<void> {
  const closed = await closePeriod(ledger, { period, report, operator: closer, despite: undefined });
  if (closed.kind === 'refused') throw new Error(`a period could not be closed: ${closed.message}`);
  const stands = await standing(ledger, period);
  const own = await reviewPeriod(ledger, stands, { operator: closer, reconciled: true });
  if (own.kind !== 'refused') throw new Error('a period was reviewed by the person who closed it');
  const other = await reviewPeriod(ledger, stands, { operator: reviewer, reconciled: true });
  if (other.kind === 'refused') throw new Error(`a period could not be reviewed: ${other.message}`);
}

/** What of a closed period is not any more as it was pinned: the head of the log, or an export. */
export async function differencesSince(ledger: YearLedger, period: Period): Promise<string[]> {
  const source = await openDatabaseSource(ledger.pool);
  const compared = await comparePeriod(source, await standing(ledger, period));
  return compared.filter(({ result }) => result !== 'same').map(({ of }) => of);
}

async function standing(ledger: YearLedger, period: Period): Promise<ClosedPeriod> {
  const { periods } = await readPeriods(ledger.pool);
  const closed = periods.find(period);
  if (!closed) throw new Error('the period is not closed');
  return closed;
}
