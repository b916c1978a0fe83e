import type { ReportJson } from '../../src/finance/rules/reconcile/report.ts';

/** Class and name of every item that is not `matched`. */
export function exceptionsIn(report: ReportJson): string[] {
  const found = Object.entries(report.classes).filter(([name]) => name !== 'matched');
  return found
    .flatMap(([name, { items }]) =>
      items.map(({ quote_digest, transaction, asset }) => `${name} ${quote_digest ?? transaction ?? asset}`),
    )
    .toSorted();
}
