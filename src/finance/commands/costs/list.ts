import { listCosts } from '../../../payments/store/refunds.ts';
import { costText } from '../../terminal/cost-text.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readListSpan } from '../../terminal/list-span.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

const maxRows = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const span = readListSpan(args);
  const costs = await withLedger(({ pool }) => listCosts(pool, maxRows, span));
  if (costs.length === 0) say('No cost of a transaction is recorded.');
  for (const { at, type, data } of costs) {
    const { network, operator } = data;
    const cost = `${costText(data)} (${data.purpose}) on ${network}`;
    const of = `  paid by ${data.payer}, transaction ${data.transaction}`;
    const [said, rest] =
      type === 'operator_cost_reversed'
        ? [`reversed: ${cost}`, `\n  why: ${data.why}`]
        : [cost, `, block ${data.block_number}`];
    say(`${span.zone.textOf(Date.parse(at))}  ${said}, by ${operator ?? 'a gateway'}\n${of}${rest}`);
  }
  return exitCodes.done;
}
