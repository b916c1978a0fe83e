import { openDatabaseSource } from '../../use-cases/books/source.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import { closePeriod, type CloseRefusalCode } from '../../use-cases/periods/close-period.ts';
import { findReportOf } from '../../../audit/store/reconciliations.ts';
import { readOperator, readOperatorText, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readReport } from '../../terminal/given-report.ts';
import { checkSealedOptions, refuseUnsealed } from '../../terminal/require-sealed.ts';
import { countOf } from '../../../base/values/count-text.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { takeNamedPeriod } from '../../terminal/period-choice.ts';
import { namedPeriod } from '../../terminal/period-text.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';

/** The refusals that say that ledger or chain is not as it must be. */
const findings: ReadonlySet<CloseRefusalCode> = new Set(['open_breaks', 'ledger_wrong', 'other_ledger']);

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period close'], args);
  checkSealedOptions(values);
  // mistakes that need no clock are reported before the database is opened
  takeNamedPeriod(positionals, values.tz, Infinity);
  // no default: the person who closes a period answers for it
  const operator = readOperator(values.by ?? '');
  const { despite } = values;
  if (despite !== undefined)
    readOperatorText(despite, '--despite says why it is closed although breaks are open');
  const given = values.report === undefined ? undefined : await readReport(values.report);
  return withLedger(async ({ pool, lane }) => {
    const { nowMs } = await openDatabaseSource(pool);
    const period = takeNamedPeriod(positionals, values.tz, nowMs);
    const stored = given ?? (await findReportOf(pool, period))?.report;
    if (stored === undefined) {
      fail(
        `no reconciliation of ${namedPeriod({ period })} is stored: reconcile it first. Nothing was recorded`,
      );
      return exitCodes.notDone;
    }
    const report = typeof stored === 'string' ? (JSON.parse(stored) as ReportJson) : stored;
    const unsealed = await refuseUnsealed(values, { pool }, report.ledger.size);
    if (unsealed !== undefined) {
      fail(`${namedPeriod({ period })} was not closed`);
      return unsealed;
    }
    const result = await closePeriod({ pool, lane }, { period, report, operator, despite });
    if (result.kind === 'refused') {
      fail(`${namedPeriod({ period })} was not closed: ${result.message}`);
      return findings.has(result.code) ? exitCodes.finding : exitCodes.notDone;
    }
    const { head, breaks, open_items: open } = result.data;
    say(
      `Closed: ${namedPeriod({ period })}, at ${head.size} events of ${head.origin}: ${countOf(breaks, 'break')}, ${countOf(open, 'open item')}.`,
    );
    return exitCodes.done;
  });
}
