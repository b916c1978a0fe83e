import {
  recordSweep,
  type Sweep,
  type SweepOrder,
  type SweepRefusal,
} from '../../use-cases/refunds/record-sweep.ts';
import { chainMessages } from '../../terminal/chain-messages.ts';
import { costLine } from '../../terminal/cost-text.ts';
import { moneyText } from '../../terminal/money-text.ts';
import { readNetwork, readOperator, readOptions } from '../../../base/terminal/arguments.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';
import {
  type ChainSources,
  readChainSources,
  readTransaction,
  recordTransfer,
} from '../../terminal/record-transfer.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<SweepRefusal, string>> = {
  ...chainMessages,
  no_sweep: 'that transaction transfers nothing from an address that receives payments',
  refund_due:
    'it is to a payer to whom at least as much is due as a refund; nothing was recorded: ' +
    'use `tollbook refunds record`, or --not-a-refund if it is none',
  transfer_claimed: 'all its transfers are already recorded for another purpose',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { order, sources } = readRequest(args);
  return recordTransfer(sources, messages, async ({ ledger, chains, config }) => {
    const answer = await recordSweep(ledger, order, chains, config?.jobs?.acceptedTokens ?? []);
    if (answer.kind === 'refused') return answer;
    return [
      ...answer.recorded.map((sweep) => `Swept: ${moneyOf(sweep)}.`),
      ...answer.repeated.map((sweep) => `Recorded before: ${moneyOf(sweep)}.`),
      ...answer.skipped.map(({ sweep, stream }) => `No sweep: ${moneyOf(sweep)} is recorded in ${stream}.`),
      costLine(answer.cost),
    ];
  });
}

function readRequest(args: readonly string[]): { order: SweepOrder; sources: ChainSources } {
  const { values } = readOptions(moneyCommands['sweeps record'], args);
  const operator = readOperator(values.by);
  const network = readNetwork(values.network);
  const transaction = readTransaction(values.tx, 'sweep');
  return {
    order: { network, transaction, operator, isNoRefund: values['not-a-refund'] },
    sources: readChainSources(values.config, values.rpc),
  };
}

function moneyOf(sweep: Sweep): string {
  return `${moneyText(sweep)} from ${sweep.pay_to} to ${sweep.swept_to}`;
}
