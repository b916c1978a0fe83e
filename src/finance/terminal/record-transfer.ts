import type pg from 'pg';
import type { Config } from '../../base/config/config.ts';
import type { CostPurpose } from '../../base/values/transaction-cost.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { Chains, Refused } from '../use-cases/refunds/final-transfers.ts';
import type { ReversalOrder } from '../use-cases/refunds/record-unexplained-transfer.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import {
  ArgumentError,
  readHash,
  readNetwork,
  readOperator,
  readOperatorText,
  readOptions,
  readRpcUrls,
  requireChains,
} from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { closeChains, openChains, readConfig } from '../../audit/terminal/chains.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { moneyCommands } from './money-descriptions.ts';
import { type ListSpan, readSpan } from './period-choice.ts';
import { openWorth, readValuation, type WorthOf } from './worth.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';

/** `--tx`: a transaction, such as that of a refund. Throws an ArgumentError if it is not a transaction hash. */
export function readTransaction(tx: string | undefined, purpose: CostPurpose | 'cost'): Hex {
  return readHash(tx, `--tx is the transaction of the ${purpose}`);
}

/** `--log`: the place of a transfer among the logs of its block. Throws an ArgumentError if it is not one. */
export function readLog(log: string | undefined): number | undefined {
  if (log === undefined) return undefined;
  if (/^(?:0|[1-9]\d{0,8})$/.test(log)) return Number(log);
  throw new ArgumentError('--log is the index of a log in its block, a whole number from 0');
}

/** Where the chains of the command are configured. */
export interface ChainSources {
  readonly config: string | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
}

/** `--config` and `--rpc`. Throws an ArgumentError if neither names an RPC. */
export function readChainSources(config: string | undefined, rpc: readonly string[]): ChainSources {
  const rpcUrls = readRpcUrls(rpc);
  requireChains(config, rpcUrls);
  return { config, rpcUrls };
}

interface SentValues {
  readonly network?: string | undefined;
  readonly tx?: string | undefined;
  readonly by?: string | undefined;
  readonly config?: string | undefined;
  readonly rpc: readonly string[];
}

/** The transaction that a command records, who records it, and where the chains are configured. */
export function readSent(values: SentValues, purpose: CostPurpose) {
  return {
    operator: readOperator(values.by),
    network: readNetwork(values.network),
    transaction: readTransaction(values.tx, purpose),
    sources: readChainSources(values.config, values.rpc),
  };
}

interface Sources {
  readonly ledger: Ledger;
  readonly chains: Chains;
  readonly config: Config | undefined;
}

/**
 * Runs `record` with the ledger and the chains, and prints the lines that it returns or the message of its refusal.
 * It is `done` also if the transaction was recorded before.
 */
export async function recordTransfer<Code extends string>(
  sources: ChainSources,
  messages: Readonly<Record<Code, string>>,
  record: (sources: Sources) => Promise<readonly string[] | Refused<Code>>,
): Promise<ExitCode> {
  return withSources(sources, async (opened) => {
    const answer = await record(opened);
    if ('code' in answer) return notDone(refusalText(answer, messages));
    for (const line of answer) say(line);
    return exitCodes.done;
  });
}

/** The same for several transfers, each with its line. It is `notDone` if one of them is refused. */
export async function recordEach<Code extends string>(
  sources: ChainSources,
  messages: Readonly<Record<Code, string>>,
  record: (
    sources: Sources,
  ) => AsyncIterable<{ readonly line: string } | (Refused<Code> & { readonly subject: string })>,
): Promise<ExitCode> {
  return withSources(sources, async (opened) => {
    let refused = 0;
    for await (const answer of record(opened)) {
      if ('line' in answer) say(answer.line);
      else {
        refused += 1;
        fail(`${answer.subject}: ${refusalText(answer, messages)}`);
      }
    }
    return refused === 0 ? exitCodes.done : exitCodes.notDone;
  });
}

function refusalText<Code extends string>(
  { code, detail }: Refused<Code>,
  messages: Readonly<Record<Code, string>>,
): string {
  return messages[code] + (detail === undefined ? '' : ` (${detail})`);
}

/** Takes a record back, as the options say, and prints it or the message of the refusal. */
export async function reverseRecorded<
  Code extends string,
  Answer extends { readonly kind: 'reversed' } | Refused<Code>,
>(
  values: Readonly<Partial<Record<'network' | 'tx' | 'why' | 'by', string>>>,
  purpose: 'transfer' | 'cost',
  messages: Readonly<Record<Code, string>>,
  reverse: (ledger: Ledger, order: Omit<ReversalOrder, 'logIndex'>) => Promise<Answer>,
  textOf: (reversed: Extract<Answer, { readonly kind: 'reversed' }>) => string,
): Promise<ExitCode> {
  const order = {
    network: readNetwork(values.network),
    transaction: readTransaction(values.tx, purpose),
    why: readOperatorText(values.why, '--why is the reason'),
    operator: readOperator(values.by),
  };
  const answer = await withLedger((ledger) => reverse(ledger, order));
  if (answer.kind === 'refused') return notDone(refusalText(answer, messages));
  say(`Reversed: ${textOf(answer as Extract<Answer, { readonly kind: 'reversed' }>)}.`);
  return exitCodes.done;
}

const mostListed = 1_000;

/** Prints what was recorded between the times that the arguments name, or `none`. */
export async function listRecorded<Event extends { readonly at: string }>(
  args: readonly string[],
  read: (pool: pg.Pool, limit: number, within: ListSpan) => Promise<readonly Event[]>,
  none: string,
  /** `worth`: of an amount on the day of recording, if rates are given. */
  textOf: (event: Event, worth: (money: Parameters<WorthOf>[0]) => string | undefined) => string,
): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['sweeps list'], args);
  const span = readSpan(values);
  const valuation = await readValuation(values);
  return withLedger(async ({ pool }) => {
    const worth = await openWorth(pool, valuation);
    const events = await read(pool, mostListed, span);
    if (events.length === 0) say(none);
    for (const event of events) {
      const line = textOf(event, (money) => worth(money, event.at.slice(0, 10)));
      say(`${span.zone.textOf(Date.parse(event.at))}  ${line}`);
    }
    return exitCodes.done;
  });
}

/** Opens the ledger and the chains for `work`, and closes them. */
export async function withSources(
  sources: ChainSources,
  work: (sources: Sources) => Promise<ExitCode>,
): Promise<ExitCode> {
  const config = sources.config === undefined ? undefined : await readConfig(sources.config);
  const chains = openChains(config, sources.rpcUrls);
  try {
    return await withLedger((ledger) => work({ ledger, chains, config }));
  } finally {
    await closeChains(chains);
  }
}
