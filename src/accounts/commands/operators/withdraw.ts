import { withdrawRole } from '../../use-cases/operators.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readNamedOperator } from '../../terminal/named-operator.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

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
