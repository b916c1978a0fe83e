import { parseArgs } from 'node:util';
import { discardCall } from '../../../jobs/discard-call.ts';
import { exitCodes, readId, readOperator, readOperatorText } from '../../arguments.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { why: { type: 'string' }, by: { type: 'string' } },
  });
  const id = readId(positionals[0], 'name the call: tollbook calls discard CALL_ID');
  const why = readOperatorText(values.why, '--why is your reason');
  const operator = readOperator(values.by);
  const { kind } = await withLedger((ledger) => discardCall(ledger, id, { why, operator }));
  if (kind === 'discarded') say(`Call ${id} is given up. Its refund is due: see \`tollbook refunds due\`.`);
  else if (kind === 'with_runner')
    fail(
      `A runner has call ${id} under a lease and may still complete it: pause the runner and try again later.`,
    );
  else fail(`There is no call ${id} that waits or is a dead letter.`);
  return kind === 'discarded' ? exitCodes.done : exitCodes.refused;
}
