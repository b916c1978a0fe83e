import { listTransfers } from '../../../payments/store/refunds.ts';
import { readListSpan } from '../../terminal/list-span.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { useText } from '../../terminal/transfer-text.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

const maxRows = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const span = readListSpan(args);
  const transfers = await withLedger(({ pool }) => listTransfers(pool, maxRows, span));
  if (transfers.length === 0) say('No transfer is recorded.');
  for (const { at, type, data } of transfers) {
    const { network, transaction, log_index: logIndex, operator } = data;
    const what =
      type === 'operator_transfer_recorded' ? useText(data) : `what was recorded is reversed: ${data.why}`;
    const when = span.zone.textOf(Date.parse(at));
    say(`${when}  ${what}, by ${operator}\n  on ${network}, transaction ${transaction}, log ${logIndex}`);
  }
  return exitCodes.done;
}
