import {
  type UnexplainedTransferOrder,
  type UnexplainedTransferRefusal,
  recordUnexplainedTransfer,
  type ReversalRefusal,
  reverseUnexplainedTransfer,
  type UnexplainedTransferRecord,
} from '../use-cases/refunds/record-unexplained-transfer.ts';
import { ArgumentError, readHash, readOptions } from '../../base/terminal/arguments.ts';
import type { ExitCode } from '../../base/terminal/exit-codes.ts';
import { chainMessages, costLine } from '../terminal/cost-text.ts';
import {
  listRecorded,
  readLog,
  readSent,
  recordTransfer,
  reverseRecorded,
} from '../terminal/record-transfer.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';
import { listTransfers } from '../../payments/store/refunds.ts';
import { moneyText } from '../terminal/money-text.ts';

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

export async function record(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['transfers record'], args);
  const { sources, ...sent } = readSent(values, 'transfer');
  const use = readUse({ ...values, returnedBy: values['returned-by'] });
  const order = { ...sent, use, logIndex: readLog(values.log) };
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
  const meaning = '--returned-by is the transaction that gave the money back';
  const by = returnedBy === undefined ? undefined : readHash(returnedBy, meaning);
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

const reversalMessages: Readonly<Record<ReversalRefusal, string>> = {
  not_recorded: 'nothing that `tollbook transfers record` recorded of that transaction stands',
  transfer_ambiguous: 'several of its transfers are recorded: name one by --log',
  superseded: 'another command was recorded meanwhile: try again',
};

export function reverse(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['transfers reverse'], args);
  const logIndex = readLog(values.log);
  return reverseRecorded(
    values,
    'transfer',
    reversalMessages,
    (ledger, order) => reverseUnexplainedTransfer(ledger, { ...order, logIndex }),
    ({ record: reversed }) => useText(reversed),
  );
}

export function list(args: readonly string[]): Promise<ExitCode> {
  return listRecorded(args, listTransfers, 'No transfer is recorded.', ({ type, data }, worth) => {
    const { network, transaction, log_index: logIndex, operator } = data;
    const what =
      type === 'operator_transfer_recorded'
        ? useText(data, worth(data))
        : `what was recorded is reversed: ${data.why}`;
    return `${what}, by ${operator}\n  on ${network}, transaction ${transaction}, log ${logIndex}`;
  });
}

const words = {
  suspense: 'is in suspense',
  income: 'is kept as income',
  returned: 'was given back',
  own: "is the operator's own",
} as const;

/** An operator's record of an unexplained transfer, as a sentence without its full stop. */
function useText(recorded: UnexplainedTransferRecord, worth?: string): string {
  const from = `from ${recorded.received_from} to ${recorded.pay_to}`;
  const by = recorded.returned ? ` by ${recorded.returned.transaction}` : '';
  return `${moneyText(recorded, worth)} ${from} ${words[recorded.as]}${by}`;
}
