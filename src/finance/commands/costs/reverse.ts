import { type CostReversalRefusal, reverseCost } from '../../../payments/use-cases/costs/record-cost.ts';
import {
  readNetwork,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import { costText } from '../../terminal/cost-text.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readTransaction } from '../../terminal/record-transfer.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<CostReversalRefusal, string>> = {
  not_recorded: 'no cost of that transaction stands in the ledger',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['costs reverse'], args);
  const order = {
    network: readNetwork(values.network),
    transaction: readTransaction(values.tx, 'cost'),
    why: readOperatorText(values.why, '--why is the reason'),
    operator: readOperator(values.by),
  };
  const answer = await withLedger((ledger) => reverseCost(ledger, order));
  if (answer.kind === 'refused') {
    fail(messages[answer.code]);
    return exitCodes.notDone;
  }
  const { cost } = answer;
  say(`Reversed: ${costText(cost)} of gas (${cost.purpose}), paid by ${cost.payer}.`);
  return exitCodes.done;
}
