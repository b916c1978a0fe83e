import type { ReportJson } from '../../../finance/rules/reconcile/report.ts';
import { readReconciliation } from '../../../audit/store/reconciliations.ts';
import type { OperatorVisit } from '../site.ts';

/** A stored report, by the number in the path. */
export interface StoredReport {
  readonly id: number;
  readonly sha256: string;
  readonly text: string;
  readonly report: ReportJson;
}

/** Undefined where there is none of that number. */
export async function reportOf({ site, params }: OperatorVisit): Promise<StoredReport | undefined> {
  const id = /^[1-9]\d{0,14}$/.test(params['id'] ?? '') ? Number(params['id']) : undefined;
  const found = id === undefined ? undefined : await readReconciliation(site.ledger.pool, id);
  if (!found || id === undefined) return undefined;
  return { id, sha256: found.sha256, text: found.report, report: JSON.parse(found.report) as ReportJson };
}
