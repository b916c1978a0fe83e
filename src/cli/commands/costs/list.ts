import { listCosts } from '../../../store/refunds.ts';
import { costText } from '../../cost-text.ts';
import { withLedger } from '../../ledger.ts';
import { readListSpan } from '../../list-span.ts';
import { say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

const maxRows = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const span = readListSpan(args);
  const costs = await withLedger(({ pool }) => listCosts(pool, maxRows, span));
  if (costs.length === 0) say('No cost of a transaction is recorded.');
  for (const { at, data } of costs) {
    const { network, operator } = data;
    say(
      `${span.zone.textOf(Date.parse(at))}  ${costText(data)} (${data.purpose}) on ${network}, by ${operator ?? 'a gateway'}\n` +
        `  paid by ${data.payer}, transaction ${data.transaction}, block ${data.block_number}`,
    );
  }
  return exitCodes.done;
}
