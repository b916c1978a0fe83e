import { openDatabaseSource } from '../../use-cases/books/source.ts';
import { reviewPeriod } from '../../use-cases/periods/move-period.ts';
import { readPeriods } from '../../use-cases/periods/read-periods.ts';
import { readOperator, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readChainCheck } from '../../terminal/chain-check.ts';
import { checkClosed, pinnedReport } from '../../terminal/check-period.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readClosed } from '../../terminal/period-choice.ts';
import { comparisonLine, namedPeriod } from '../../terminal/period-text.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period review'], args);
  const operator = readOperator(values.by ?? '');
  return withLedger(async ({ pool, lane }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') return refuse(found.words);
    const { closed } = found;
    // a review that cannot be recorded needs no reading of the ledger
    const early = (await readPeriods(pool)).periods.refuseReview(closed.period, operator);
    if (early) return refuse(`${namedPeriod(closed)} was not reviewed: ${early.message}`);
    const chains = await readChainCheck(values, closed, { pool });
    const pinned = await pinnedReport(pool, closed);
    const comparisons = await checkClosed(closed, await openDatabaseSource(pool), chains, pinned);
    for (const comparison of comparisons) say(comparisonLine(comparison));
    if (comparisons.some(({ result }) => result === 'differs')) {
      fail(`${namedPeriod(closed)} was not reviewed: it is not as it was closed`);
      return exitCodes.finding;
    }
    const result = await reviewPeriod({ pool, lane }, closed, { operator, reconciled: chains !== undefined });
    if (result.kind === 'refused')
      return refuse(`${namedPeriod(closed)} was not reviewed: ${result.message}`);
    say(`Reviewed: ${namedPeriod(closed)}, closed by ${closed.close.data.operator}.`);
    return exitCodes.done;
  });
}

function refuse(words: string): ExitCode {
  fail(words);
  return exitCodes.notDone;
}
