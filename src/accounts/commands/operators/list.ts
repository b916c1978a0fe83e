import { listOperators } from '../../store/operators.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const operators = await withLedger(({ pool }) => listOperators(pool));
  for (const { name, role = 'withdrawn', email = 'erased', hasFactor } of operators)
    say(`${name}  ${role}  ${email}${hasFactor ? '' : '  without a second factor'}`);
  return exitCodes.done;
}
