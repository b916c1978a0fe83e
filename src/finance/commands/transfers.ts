import { isHex32 } from '../../base/values/primitives.ts';
import {
  type UnexplainedTransferOrder,
  type UnexplainedTransferRefusal,
  recordUnexplainedTransfer,
  type ReversalRefusal,
  reverseUnexplainedTransfer,
  type UnexplainedTransferRecord,
} from '../use-cases/refunds/record-unexplained-transfer.ts';
import {
  ArgumentError,
  readNetwork,
  readOperator,
  readOptions,
  readOperatorText,
} from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { chainMessages, costLine } from '../terminal/cost-text.ts';
import {
  type ChainSources,
  readChainSources,
  readLog,
  readTransaction,
  recordTransfer,
} from '../terminal/record-transfer.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { notDone, say } from '../../base/terminal/terminal.ts';
import { listTransfers } from '../../payments/store/refunds.ts';
import { readListSpan } from '../terminal/period-choice.ts';
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

const reversalMessages: Readonly<Record<ReversalRefusal, string>> = {
  not_recorded: 'nothing that `tollbook transfers record` recorded of that transaction stands',
  transfer_ambiguous: 'several of its transfers are recorded: name one by --log',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function reverse(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['transfers reverse'], args);
  const order = {
    network: readNetwork(values.network),
    transaction: readTransaction(values.tx, 'transfer'),
    logIndex: readLog(values.log),
    why: readOperatorText(values.why, '--why is the reason'),
    operator: readOperator(values.by),
  };
  const answer = await withLedger((ledger) => reverseUnexplainedTransfer(ledger, order));
  if (answer.kind === 'refused')
    return notDone(
      reversalMessages[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`),
    );
  say(`Reversed: ${useText(answer.record)}.`);
  return exitCodes.done;
}

const maxRows = 1_000;

export async function list(args: readonly string[]): Promise<ExitCode> {
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

const words = {
  suspense: 'is in suspense',
  income: 'is kept as income',
  returned: 'was given back',
  own: "is the operator's own",
} as const;

/** An operator's record of an unexplained transfer, as a sentence without its full stop. */
function useText(recorded: UnexplainedTransferRecord): string {
  const from = `from ${recorded.received_from} to ${recorded.pay_to}`;
  const by = recorded.returned ? ` by ${recorded.returned.transaction}` : '';
  return `${moneyText(recorded)} ${from} ${words[recorded.as]}${by}`;
}
