import { isHex32 } from '../../../base/values/primitives.ts';
import {
  type UnexplainedTransferOrder,
  type UnexplainedTransferRefusal,
  recordUnexplainedTransfer,
} from '../../use-cases/refunds/record-unexplained-transfer.ts';
import { ArgumentError, readNetwork, readOperator, readOptions } from '../../../base/terminal/arguments.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';
import { chainMessages } from '../../terminal/chain-messages.ts';
import { costLine } from '../../terminal/cost-text.ts';
import {
  type ChainSources,
  readChainSources,
  readLog,
  readTransaction,
  recordTransfer,
} from '../../terminal/record-transfer.ts';
import { useText } from '../../terminal/transfer-text.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<UnexplainedTransferRefusal, string>> = {
  ...chainMessages,
  no_transfer:
    'that transaction transfers nothing to an address that receives payments, in a token that was ever offered or is configured',
  transfer_ambiguous: 'several of its transfers could be meant: name one by --log',
  transfer_claimed: 'that transfer is already recorded for another purpose',
  payment_known:
    'the authorization of a payment in the ledger moved it: the gateway records it, or `tollbook settlements resolve` does; nothing was recorded',
  from_payee: 'it comes from another address that receives payments: use `tollbook sweeps record`',
  to_itself: 'it is from that address to itself: it is --own; nothing was recorded',
  recorded_otherwise:
    'it is recorded otherwise: `tollbook transfers reverse` takes that back, if it is wrong; nothing was recorded',
  no_return: 'the other transaction has no transfer of the whole amount to its sender; nothing was recorded',
  returned_before: 'the other transfer is older than the money that it should have given back',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { order, sources } = readRequest(args);
  return recordTransfer(sources, messages, async ({ ledger, chains, config }) => {
    const answer = await recordUnexplainedTransfer(ledger, order, chains, config?.jobs?.acceptedTokens ?? []);
    if (answer.kind === 'refused') return answer;
    const text = useText(answer.record);
    return [
      answer.kind === 'recorded' ? `Recorded: ${text}.` : `Recorded before: ${text}.`,
      ...(answer.cost ? [costLine(answer.cost)] : []),
    ];
  });
}

function readRequest(args: readonly string[]): { order: UnexplainedTransferOrder; sources: ChainSources } {
  const { values } = readOptions(moneyCommands['transfers record'], args);
  const operator = readOperator(values.by);
  const network = readNetwork(values.network);
  const transaction = readTransaction(values.tx, 'transfer');
  return {
    order: {
      network,
      transaction,
      logIndex: readLog(values.log),
      use: readUse({ ...values, returnedBy: values['returned-by'] }),
      operator,
    },
    sources: readChainSources(values.config, values.rpc),
  };
}

function readUse({
  suspense,
  income,
  own,
  returnedBy,
}: {
  readonly suspense: boolean;
  readonly income: boolean;
  readonly own: boolean;
  readonly returnedBy: string | undefined;
}): UnexplainedTransferOrder['use'] {
  const by = returnedBy?.toLowerCase();
  if (by !== undefined && !isHex32(by))
    throw new ArgumentError(
      '--returned-by is the transaction that gave the money back: 0x and 64 hexadecimal digits',
    );
  const uses: UnexplainedTransferOrder['use'][] = [
    ...(suspense ? [{ as: 'suspense' } as const] : []),
    ...(income ? [{ as: 'income' } as const] : []),
    ...(own ? [{ as: 'own' } as const] : []),
    ...(by === undefined ? [] : [{ as: 'returned', by } as const]),
  ];
  const [use, another] = uses;
  if (use && !another) return use;
  throw new ArgumentError('say what the money is by one of --suspense, --income, --returned-by TX and --own');
}
