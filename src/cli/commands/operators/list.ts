import { listOperators } from '../../../store/operators.ts';
import { withLedger } from '../../ledger.ts';
import { say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const operators = await withLedger(({ pool }) => listOperators(pool));
  for (const { name, role = 'withdrawn', email = 'erased', hasFactor } of operators)
    say(`${name}  ${role}  ${email}${hasFactor ? '' : '  without a second factor'}`);
  return exitCodes.done;
}
