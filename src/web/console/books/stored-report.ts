import type { ReportJson } from '../../../finance/rules/reconcile/report.ts';
import { readReconciliation } from '../../../audit/store/reconciliations.ts';
import type { OperatorVisit } from '../visit.ts';
import type pg from 'pg';
import { isSaidOpen, readExplanations } from '../../../finance/use-cases/reconcile/explain-break.ts';

/** A stored report, by the number in the path. */
export interface StoredReport {
  readonly id: number;
  readonly sha256: string;
  readonly text: string;
  readonly report: ReportJson;
}

/** Undefined if there is none of that number. */
export async function reportOf({ site, params }: OperatorVisit): Promise<StoredReport | undefined> {
  const id = /^[1-9]\d{0,14}$/.test(params['id'] ?? '') ? Number(params['id']) : undefined;
  const found = id === undefined ? undefined : await readReconciliation(site.ledger.pool, id);
  if (!found || id === undefined) return undefined;
  return { id, sha256: found.sha256, text: found.report, report: JSON.parse(found.report) as ReportJson };
}

/** Of the breaks of a stored report, those without an explanation until now. Breaks that a report only counts are open. */
export async function countOpenBreaks(pool: pg.Pool, id: number): Promise<number> {
  const report = await readReport(pool, id);
  return report ? openBreaksOf(pool, report) : 0;
}

export async function readReport(pool: pg.Pool, id: number): Promise<ReportJson | undefined> {
  const stored = await readReconciliation(pool, id);
  return stored && (JSON.parse(stored.report) as ReportJson);
}

export async function openBreaksOf(
  pool: pg.Pool,
  report: Pick<ReportJson, 'classes' | 'breaks'>,
): Promise<number> {
  const all = breaksIn(report);
  const open = await openItemsOf(pool, all);
  return report.breaks - (all.length - open.length);
}

/** The breaks that a report lists, each with the name of its class. */
export function breaksIn({ classes }: Pick<ReportJson, 'classes'>) {
  return Object.entries(classes ?? {}).flatMap(([name, found]) =>
    found?.kind === 'break' ? found.items.map((item) => ({ name, item })) : [],
  );
}

/** Of breaks, those without an explanation until now. */
export async function openItemsOf(
  pool: pg.Pool,
  breaks: ReturnType<typeof breaksIn>,
): Promise<ReturnType<typeof breaksIn>> {
  const ids = breaks.flatMap(({ item }) => item.break_id ?? []);
  const explanations = await readExplanations(pool, ids);
  return breaks.filter(({ item }) => isSaidOpen(explanations.get(item.break_id ?? '')));
}
