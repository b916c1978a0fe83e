import { openDatabaseSource, openFileSource } from '../../use-cases/books/source.ts';
import { findPeriods } from '../../use-cases/periods/read-periods.ts';
import type { Comparison } from '../../use-cases/periods/compare-period.ts';
import type { ClosedPeriod } from '../../rules/periods/periods.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readChainCheck } from '../../terminal/chain-check.ts';
import { checkClosed, pinnedReport } from '../../terminal/check-period.ts';
import { requireExport } from '../../../audit/terminal/given-proof.ts';
import { readReport } from '../../terminal/given-report.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { findClosed, readClosed } from '../../terminal/period-choice.ts';
import { comparisonLine, periodLine } from '../../terminal/period-text.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';
import type { ValuesOf } from '../../../base/terminal/command.ts';

type Values = ValuesOf<(typeof bookCommands)['period check']>;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period check'], args);
  const { input } = values;
  if (input === undefined && values.checkpoint.length > 0)
    throw new ArgumentError('--checkpoint goes with --input: the database has its own');
  if (input !== undefined) return checkFile(input, values, positionals);
  return withLedger(async ({ pool }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return notClosed(found.words);
    const chains = await readChainCheck(values, found.closed, { pool });
    const pinned = (await givenReport(values)) ?? (await pinnedReport(pool, found.closed));
    return verdict(
      found.closed,
      await checkClosed(found.closed, await openDatabaseSource(pool), chains, pinned),
    );
  });
}

async function checkFile(file: string, values: Values, positionals: readonly string[]): Promise<ExitCode> {
  await requireExport(file);
  const source = openFileSource(file, Date.now());
  const closed = findClosed(await findPeriods(source), positionals);
  if (!closed) return notClosed(`${positionals[0]} is not closed in ${file}`);
  const chains = await readChainCheck(values, closed, { file, checkpoints: values.checkpoint });
  return verdict(closed, await checkClosed(closed, source, chains, await givenReport(values)));
}

async function givenReport({ report }: Values) {
  return report === undefined ? undefined : readReport(report);
}

function notClosed(words: string): ExitCode {
  fail(words);
  return exitCodes.notDone;
}

function verdict(closed: ClosedPeriod, comparisons: readonly Comparison[]): ExitCode {
  say(periodLine(closed));
  for (const comparison of comparisons) say(comparisonLine(comparison));
  const isSame = comparisons.every(({ result }) => result !== 'differs');
  say(isSame ? 'as it was closed' : 'NOT AS IT WAS CLOSED');
  return isSame ? exitCodes.done : exitCodes.finding;
}
