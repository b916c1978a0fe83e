import { openDatabaseSource, openFileSource } from '../use-cases/books/source.ts';
import type { ReportJson } from '../rules/reconcile/report.ts';
import { closePeriod, type CloseRefusalCode } from '../use-cases/periods/close-period.ts';
import { findReportOf } from '../../audit/store/reconciliations.ts';
import { readOperator, readOperatorText, readOptions, ArgumentError } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import {
  readReport,
  openChainCheck,
  readGivenChains,
  checkClosed,
  pinnedReport,
} from '../terminal/check-period.ts';
import { checkSealedOptions, refuseUnsealed } from '../terminal/require-sealed.ts';
import { countOf } from '../../base/values/count-text.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { checkPeriodName, takeNamedPeriod, readClosed, findClosed } from '../terminal/period-choice.ts';
import { namedPeriod, comparisonLine, periodLine, periodLines } from '../terminal/period-text.ts';
import { fail, finding, notDone, say } from '../../base/terminal/terminal.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';
import { readPeriods, findPeriods } from '../use-cases/periods/read-periods.ts';
import { reviewPeriod, reopenPeriod } from '../use-cases/periods/move-period.ts';
import type { Comparison } from '../use-cases/periods/compare-period.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { requireExport } from '../../audit/terminal/given-proof.ts';
import type { ValuesOf } from '../../base/terminal/command.ts';

/** The refusals that say that ledger or chain is not as it must be. */
const findings: ReadonlySet<CloseRefusalCode> = new Set(['open_breaks', 'ledger_wrong', 'other_ledger']);

export async function close(args: readonly string[]): Promise<ExitCode> {
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

export async function review(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period review'], args);
  checkPeriodName(positionals);
  const operator = readOperator(values.by ?? '');
  const given = await readGivenChains(values);
  return withLedger(async ({ pool, lane }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return notDone(found.words);
    const { closed } = found;
    // a review that cannot be recorded needs no reading of the ledger
    const early = (await readPeriods(pool)).periods.refuseReview(closed.period, operator);
    if (early) return notDone(`${namedPeriod(closed)} was not reviewed: ${early.message}`);
    const chains = await openChainCheck(given, closed, { pool });
    const pinned = await pinnedReport(pool, closed);
    const comparisons = await checkClosed(closed, await openDatabaseSource(pool), chains, pinned);
    for (const comparison of comparisons) say(comparisonLine(comparison));
    if (comparisons.some(({ result }) => result === 'differs'))
      return finding(`${namedPeriod(closed)} was not reviewed: it is not as it was closed`);
    const result = await reviewPeriod({ pool, lane }, closed, { operator, reconciled: chains !== undefined });
    if (result.kind === 'refused')
      return notDone(`${namedPeriod(closed)} was not reviewed: ${result.message}`);
    say(`Reviewed: ${namedPeriod(closed)}, closed by ${closed.close.data.operator}.`);
    return exitCodes.done;
  });
}

export async function reopen(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period reopen'], args);
  checkPeriodName(positionals);
  const reason = readOperatorText(values.reason, '--reason says why it is opened again');
  const operator = readOperator(values.by ?? '');
  return withLedger(async ({ pool, lane }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return notDone(found.words);
    const result = await reopenPeriod({ pool, lane }, found.closed.period, { operator, reason });
    if (result.kind === 'refused')
      return notDone(`${namedPeriod(found.closed)} was not opened again: ${result.message}`);
    say(`Open again: ${namedPeriod(found.closed)}.`);
    return exitCodes.done;
  });
}

export async function list(): Promise<ExitCode> {
  const { periods } = await withLedger(({ pool }) => readPeriods(pool));
  const { all } = periods;
  if (all.length === 0) say('No period is closed.');
  for (const closed of all) say(periodLine(closed));
  return exitCodes.done;
}

export async function show(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period show'], args);
  checkPeriodName(positionals);
  return withLedger(async ({ pool }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return notDone(found.words);
    const { close: said, review: reviewed = null } = found.closed;
    if (values.json) say(JSON.stringify({ close: said, review: reviewed }, undefined, 2));
    else for (const line of periodLines(found.closed)) say(line);
    return exitCodes.done;
  });
}

type Values = ValuesOf<(typeof bookCommands)['period check']>;

export async function check(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period check'], args);
  checkPeriodName(positionals);
  const { input } = values;
  if (input === undefined && values.checkpoint.length > 0)
    throw new ArgumentError('--checkpoint goes with --input: the database has its own');
  const given = await readGivenChains(values);
  const report = await givenReport(values);
  if (input !== undefined)
    return checkFile(input, { checkpoints: values.checkpoint, given, report }, positionals);
  return withLedger(async ({ pool }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return notDone(found.words);
    const chains = await openChainCheck(given, found.closed, { pool });
    const pinned = report ?? (await pinnedReport(pool, found.closed));
    return verdict(
      found.closed,
      await checkClosed(found.closed, await openDatabaseSource(pool), chains, pinned),
    );
  });
}

interface Given {
  readonly checkpoints: readonly string[];
  readonly given: Awaited<ReturnType<typeof readGivenChains>>;
  readonly report: ReportJson | undefined;
}

async function checkFile(
  file: string,
  { checkpoints, given, report }: Given,
  positionals: readonly string[],
): Promise<ExitCode> {
  await requireExport(file);
  const source = openFileSource(file, Date.now());
  const closed = findClosed(await findPeriods(source), positionals);
  if (!closed) return notDone(`${positionals[0]} is not closed in ${file}`);
  const chains = await openChainCheck(given, closed, { file, checkpoints });
  return verdict(closed, await checkClosed(closed, source, chains, report));
}

async function givenReport({ report }: Values) {
  return report === undefined ? undefined : readReport(report);
}

function verdict(closed: ClosedPeriod, comparisons: readonly Comparison[]): ExitCode {
  say(periodLine(closed));
  for (const comparison of comparisons) say(comparisonLine(comparison));
  const isSame = comparisons.every(({ result }) => result !== 'differs');
  say(isSame ? 'as it was closed' : 'NOT AS IT WAS CLOSED');
  return isSame ? exitCodes.done : exitCodes.finding;
}
