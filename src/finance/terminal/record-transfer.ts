import type { Config } from '../../base/config/config.ts';
import type { CostPurpose } from '../../base/values/transaction-cost.ts';
import { type Hex, isHex32 } from '../../base/values/primitives.ts';
import type { Chains, Refused } from '../use-cases/refunds/final-transfers.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import { ArgumentError, readRpcUrls, requireChains } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { closeChains, openChains, readConfig } from '../../audit/terminal/chains.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';

/** `--tx`: a transaction, such as that of a refund. Throws an ArgumentError where it is not a transaction hash. */
export function readTransaction(tx: string | undefined, purpose: CostPurpose | 'cost'): Hex {
  const transaction = tx?.toLowerCase() ?? '';
  if (isHex32(transaction)) return transaction;
  throw new ArgumentError(`--tx is the transaction of the ${purpose}: 0x and 64 hexadecimal digits`);
}

/** `--log`: the place of a transfer among the logs of its block. Throws an ArgumentError where it is none. */
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

/** `--config` and `--rpc`. Throws an ArgumentError where neither names an RPC. */
export function readChainSources(config: string | undefined, rpc: readonly string[]): ChainSources {
  const rpcUrls = readRpcUrls(rpc);
  requireChains(config, rpcUrls);
  return { config, rpcUrls };
}

interface Sources {
  readonly ledger: Ledger;
  readonly chains: Chains;
  readonly config: Config | undefined;
}

/**
 * Runs `record` with the ledger and the chains, and prints the lines that it returns or the message of its refusal.
 * It is `done` also where the transaction was recorded before.
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

/** The same for several transfers, each with its line. It is `notDone` where one of them is refused. */
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
