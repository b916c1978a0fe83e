import { removeFactors } from '../../use-cases/operators.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readNamedOperator } from '../../terminal/named-operator.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const named = readNamedOperator(args, 'reset-factor');
  if (await withLedger((ledger) => removeFactors(ledger, named))) {
    say(`${named.name} has no second factor any more: the next sign-in to the console sets one up.`);
    return exitCodes.done;
  }
  fail(`There is no operator ${named.name}.`);
  return exitCodes.notDone;
}
