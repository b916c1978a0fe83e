import type { Config } from '../../base/config/config.ts';
import { type ReportJson, leavesUnexplained } from '../rules/reconcile/report.ts';
import type { Period } from '../../base/values/period.ts';
import type { LedgerSource } from '../use-cases/reconcile/ledger-reading.ts';
import { reconcile } from '../use-cases/reconcile/reconcile.ts';
import { openScanners } from '../../audit/terminal/chains.ts';
import { startProgress } from '../../base/terminal/progress.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';

/** Options of a reconciliation that the ledger does not hold. */
interface ReconcileRequest {
  readonly period: Period;
  readonly rpcUrls: ReadonlyMap<string, string>;
  readonly config: Config | undefined;
  readonly pinned?: ReadonlyMap<string, bigint>;
  readonly twice?: boolean;
  readonly resumeFile?: string | undefined;
}

/** Reconciles a ledger with the chains of the configuration and of `--rpc`, and shows its progress. */
export async function runReconcile(request: ReconcileRequest, source: LedgerSource): Promise<ReportJson> {
  const { period, config, rpcUrls, pinned = new Map(), twice = false, resumeFile } = request;
  const chains = openScanners(config, rpcUrls);
  const progress = startProgress();
  try {
    return await reconcile({
      period,
      source,
      chains,
      accepted: config?.jobs?.acceptedTokens ?? [],
      pinned,
      twice,
      resumeFile,
      onProgress: progress.at,
    });
  } finally {
    progress.end();
    await Promise.all([...chains.values()].map((chain) => chain.close()));
  }
}

/** How a command ends that has made a report. An amount that no item explains is a finding, as a break without an explanation is. */
export function exitCodeOf(
  report: Pick<ReportJson, 'result' | 'breaks' | 'breaks_explained' | 'accounts'>,
): ExitCode {
  const { result, breaks, breaks_explained: explained } = report;
  if (leavesUnexplained(report)) return exitCodes.finding;
  if (result !== 'breaks') return exitCodes.done;
  return breaks === explained ? exitCodes.explained : exitCodes.finding;
}
