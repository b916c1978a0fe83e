import { ownAccounts } from '../../payments/use-cases/costs/own-accounts.ts';
import {
  recordCost,
  type CostReversalRefusal,
  reverseCost,
} from '../../payments/use-cases/costs/record-cost.ts';
import { recordMissingCosts } from '../use-cases/costs/record-missing.ts';
import { nativeDecimals } from '../../base/values/native-coin.ts';
import { costPurposes, type CostPurpose, costWei } from '../../base/values/transaction-cost.ts';
import {
  ArgumentError,
  readAddress,
  readNetwork,
  readOperator,
  readOptions,
} from '../../base/terminal/arguments.ts';
import { openPublicationsOf } from '../../audit/terminal/chains.ts';
import type { ExitCode } from '../../base/terminal/exit-codes.ts';
import { costMessages, missingLine, missingMessages, recordedLine, costText } from '../terminal/cost-text.ts';
import { readSpan } from '../terminal/period-choice.ts';
import { startProgress } from '../../base/terminal/progress.ts';
import {
  listRecorded,
  readChainSources,
  readTransaction,
  recordEach,
  recordTransfer,
  reverseRecorded,
} from '../terminal/record-transfer.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';
import type { ValuesOf } from '../../base/terminal/command.ts';
import { listCosts } from '../../payments/store/refunds.ts';

type Values = ValuesOf<(typeof moneyCommands)['costs record']>;

export async function record(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['costs record'], args);
  return values.missing ? recordMissing(values) : recordOne(values);
}

async function recordOne(values: Values): Promise<ExitCode> {
  if (values.from !== undefined) throw new ArgumentError('--from is of --missing');
  const { purpose, ...common } = { ...readCommon(values), purpose: readPurpose(values.purpose) };
  const { stated, operator, sources } = common;
  const network = readNetwork(values.network);
  const transaction = readTransaction(values.tx, purpose);
  return recordTransfer(sources, costMessages, async ({ ledger, chains, config }) => {
    const own = await ownAccounts(ledger.pool, network, stated, config);
    const order = { network, transaction, purpose, own, operator };
    const answer = await recordCost(ledger, order, chains.get(network));
    return answer.kind === 'refused' ? answer : [recordedLine(answer)];
  });
}

async function recordMissing(values: Values): Promise<ExitCode> {
  if (values.tx !== undefined || values.purpose !== undefined)
    throw new ArgumentError('--missing finds the transactions in the ledger: leave --tx and --purpose out');
  const { network, stated, operator, sources } = readCommon(values);
  const missing = { network, stated, operator, publishedSinceMs: readSpan({ from: values.from }).fromMs };
  return recordEach(sources, missingMessages, async function* ({ ledger, chains, config }) {
    const publications = openPublicationsOf(config, sources.rpcUrls);
    const progress = startProgress();
    const onProgress = (what: string, done: bigint, all: bigint): void => progress.at(what, done, all);
    let found = 0;
    try {
      for await (const one of recordMissingCosts(ledger, missing, {
        chains,
        publications,
        config,
        onProgress,
      })) {
        progress.end();
        found += 1;
        yield missingLine(one);
      }
    } finally {
      progress.end();
      await Promise.all(publications.map((each) => each.close()));
    }
    if (found === 0) yield { line: 'No cost is missing.' };
  });
}

function readCommon({ network, payer, by, config, rpc }: Values) {
  return {
    network: network === undefined ? undefined : readNetwork(network),
    stated: payer === undefined ? [] : [readAddress(payer, '--payer is the address that sent it')],
    operator: readOperator(by),
    sources: readChainSources(config, rpc),
  };
}

function readPurpose(text: string | undefined): CostPurpose {
  const purpose = costPurposes.find((one) => one === text);
  if (purpose === undefined)
    throw new ArgumentError(`--purpose is what it was sent for: ${costPurposes.join(', ')}`);
  return purpose;
}

const reversalMessages: Readonly<Record<CostReversalRefusal, string>> = {
  not_recorded: 'no cost of that transaction stands in the ledger',
  superseded: 'another command was recorded meanwhile: try again',
};

export function reverse(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['costs reverse'], args);
  return reverseRecorded(
    values,
    'cost',
    reversalMessages,
    reverseCost,
    ({ cost }) => `${costText(cost)} of gas (${cost.purpose}), paid by ${cost.payer}`,
  );
}

export function list(args: readonly string[]): Promise<ExitCode> {
  return listRecorded(args, listCosts, 'No cost of a transaction is recorded.', ({ type, data }, worthOf) => {
    const worth = worthOf({ ...data, decimals: nativeDecimals, amount: costWei(data) });
    const beside = worth === undefined ? '' : `, ${worth}`;
    const cost = `${costText(data)}${beside} (${data.purpose}) on ${data.network}`;
    const of = `  paid by ${data.payer}, transaction ${data.transaction}`;
    const [said, rest] =
      type === 'operator_cost_reversed'
        ? [`reversed: ${cost}`, `\n  why: ${data.why}`]
        : [cost, `, block ${data.block_number}`];
    return `${said}, by ${data.operator ?? 'a gateway'}\n${of}${rest}`;
  });
}
