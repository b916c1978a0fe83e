import { reopenPeriod } from '../../use-cases/periods/move-period.ts';
import { readOperator, readOperatorText, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readClosed } from '../../terminal/period-choice.ts';
import { namedPeriod } from '../../terminal/period-text.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period reopen'], args);
  const reason = readOperatorText(values.reason, '--reason says why it is opened again');
  const operator = readOperator(values.by ?? '');
  return withLedger(async ({ pool, lane }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') {
      fail(found.words);
      return exitCodes.notDone;
    }
    const result = await reopenPeriod({ pool, lane }, found.closed.period, { operator, reason });
    if (result.kind === 'refused') {
      fail(`${namedPeriod(found.closed)} was not opened again: ${result.message}`);
      return exitCodes.notDone;
    }
    say(`Open again: ${namedPeriod(found.closed)}.`);
    return exitCodes.done;
  });
}
