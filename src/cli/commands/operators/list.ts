import { listOperators } from '../../../store/operators.ts';
import { exitCodes } from '../../arguments.ts';
import { withLedger } from '../../ledger.ts';
import { say } from '../../terminal.ts';

export async function run(): Promise<number> {
  const operators = await withLedger(({ pool }) => listOperators(pool));
  for (const { name, role = 'withdrawn', email = 'erased', hasFactor } of operators)
    say(`${name}  ${role}  ${email}${hasFactor ? '' : '  without a second factor'}`);
  return exitCodes.done;
}
