import { listSweeps } from '../../../payments/store/refunds.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readListSpan } from '../../terminal/list-span.ts';
import { moneyText } from '../../terminal/money-text.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

const maxRows = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const span = readListSpan(args);
  const sweeps = await withLedger(({ pool }) => listSweeps(pool, maxRows, span));
  if (sweeps.length === 0) say('No sweep is recorded.');
  for (const { at, data } of sweeps) {
    const { network, operator } = data;
    say(
      `${span.zone.textOf(Date.parse(at))}  ${moneyText(data)} on ${network}, by ${operator}\n` +
        `  from ${data.pay_to} to ${data.swept_to}, transaction ${data.transaction}, log ${data.log_index}`,
    );
  }
  return exitCodes.done;
}
