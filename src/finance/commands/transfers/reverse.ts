import {
  type ReversalRefusal,
  reverseUnexplainedTransfer,
} from '../../use-cases/refunds/record-unexplained-transfer.ts';
import {
  readNetwork,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readLog, readTransaction } from '../../terminal/record-transfer.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { useText } from '../../terminal/transfer-text.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<ReversalRefusal, string>> = {
  not_recorded: 'nothing that `tollbook transfers record` recorded of that transaction stands',
  transfer_ambiguous: 'several of its transfers are recorded: name one by --log',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['transfers reverse'], args);
  const order = {
    network: readNetwork(values.network),
    transaction: readTransaction(values.tx, 'transfer'),
    logIndex: readLog(values.log),
    why: readOperatorText(values.why, '--why is the reason'),
    operator: readOperator(values.by),
  };
  const answer = await withLedger((ledger) => reverseUnexplainedTransfer(ledger, order));
  if (answer.kind === 'refused') {
    fail(messages[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`));
    return exitCodes.notDone;
  }
  say(`Reversed: ${useText(answer.record)}.`);
  return exitCodes.done;
}
