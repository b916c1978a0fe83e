import { leavesUnexplained, type ReportJson } from '../rules/reconcile/report.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';

/** How a command ends that has made a report. An amount that no item explains is a finding, as a break without an explanation is. */
export function exitCodeOf(
  report: Pick<ReportJson, 'result' | 'breaks' | 'breaks_explained' | 'accounts'>,
): ExitCode {
  const { result, breaks, breaks_explained: explained } = report;
  if (leavesUnexplained(report)) return exitCodes.finding;
  if (result !== 'breaks') return exitCodes.done;
  return breaks === explained ? exitCodes.explained : exitCodes.finding;
}
