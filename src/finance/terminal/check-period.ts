import type pg from 'pg';
import type { LedgerSource as BooksSource } from '../use-cases/books/source.ts';
import type { Config } from '../../base/config/config.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import type { ReportJson } from '../rules/reconcile/report.ts';
import { compareReport, comparePeriod, type Comparison } from '../use-cases/periods/compare-period.ts';
import type { LedgerSource } from '../use-cases/reconcile/ledger-source.ts';
import { findReportByHash } from '../../audit/store/reconciliations.ts';
import { runReconcile } from './run-reconcile.ts';

/** The chains to compare a close with, and the ledger at the head that it names. */
export interface ChainCheck {
  readonly rpcUrls: ReadonlyMap<string, string>;
  readonly config: Config | undefined;
  readonly source: LedgerSource;
}

/**
 * Compares a close with the ledger and, where there are chains, with a reconciliation at the head of the close.
 * @throws ExportError, BooksError or ReconcileError where a side cannot be read
 */
export async function checkClosed(
  closed: ClosedPeriod,
  source: BooksSource,
  chains: ChainCheck | undefined,
  pinned: ReportJson | undefined,
): Promise<Comparison[]> {
  const compared = await comparePeriod(source, closed);
  if (!chains)
    return [
      ...compared,
      {
        of: 'reconciliation',
        result: 'not_compared',
        words: 'no chain was asked: give --rpc and --pubkey, or --config',
      },
    ];
  const report = await runReconcile({ period: closed.period, ...chains }, chains.source);
  return [...compared, compareReport(closed, report, pinned)];
}

/** The report of a close, where the database still has it. */
export async function pinnedReport(pool: pg.Pool, { close }: ClosedPeriod): Promise<ReportJson | undefined> {
  const text = await findReportByHash(pool, close.data.report_sha256);
  return text === undefined ? undefined : (JSON.parse(text) as ReportJson);
}
