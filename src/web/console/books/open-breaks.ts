import type pg from 'pg';
import type { ReportJson } from '../../../finance/rules/reconcile/report.ts';
import { isSaidOpen, readExplanations } from '../../../finance/use-cases/reconcile/explain-break.ts';
import { readReconciliation } from '../../../audit/store/reconciliations.ts';

/** Of the breaks of a stored report, those without an explanation until now. Breaks that a report only counts are open. */
export async function countOpenBreaks(pool: pg.Pool, id: number): Promise<number> {
  const stored = await readReconciliation(pool, id);
  if (!stored) return 0;
  const report = JSON.parse(stored.report) as ReportJson;
  const ids = Object.values(report.classes ?? {}).flatMap((found) =>
    found?.kind === 'break' ? found.items.flatMap((item) => item.break_id ?? []) : [],
  );
  const explanations = await readExplanations(pool, ids);
  const explained = ids.filter((breakId) => !isSaidOpen(explanations.get(breakId)));
  return report.breaks - explained.length;
}
