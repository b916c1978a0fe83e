import { withdrawRole } from '../../../identity/operators.ts';
import { withLedger } from '../../ledger.ts';
import { readNamedOperator } from '../../named-operator.ts';
import { fail, say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { name, by } = readNamedOperator(args, 'withdraw');
  const change = { name, by: { name: by, at: 'command' } } as const;
  const { kind } = await withLedger((ledger) => withdrawRole(ledger, change));
  if (kind === 'withdrawn') {
    say(`${name} has no role any more, and the sessions have ended.`);
    return exitCodes.done;
  }
  fail(`There is no operator ${name} with a role. Invitations of the name were ended.`);
  return exitCodes.notDone;
}
