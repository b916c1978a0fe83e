import { withdrawRole } from '../../../identity/operators.ts';
import { withLedger } from '../../ledger.ts';
import { readNamedOperator } from '../../named-operator.ts';
import { fail, say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const named = readNamedOperator(args, 'withdraw');
  const { kind } = await withLedger((ledger) => withdrawRole(ledger, { ...named, isLastAllowed: true }));
  if (kind === 'withdrawn') {
    say(`${named.name} has no role any more, and the sessions have ended.`);
    return exitCodes.done;
  }
  fail(`There is no operator ${named.name} with a role. Invitations of the name were ended.`);
  return exitCodes.notDone;
}
