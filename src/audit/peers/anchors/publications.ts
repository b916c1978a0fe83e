import { privateKeyToAddress } from 'viem/accounts';
import { toEventSelector } from 'viem/utils';
import type { AnchorConfig } from '../../../base/config/config.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import { type Ask, askTaggedBlock, findBlockBefore } from '../../../payments/peers/chain/blocks.ts';
import { mayBeRange, readLogRange } from '../../../payments/peers/chain/log-range.ts';
import { type CostReading, readCost } from '../../../payments/peers/chain/transaction-cost.ts';
import { askRightChain } from '../../../base/peers/rpc/chain-id.ts';
import { addressWord } from '../../../base/peers/rpc/eth-call.ts';
import { createRpc, type RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { withRetries } from '../../../base/peers/rpc/retries.ts';
import { originHash } from './chain-anchor.ts';

/** The transactions in which tree heads of the log were published to a CheckpointAnchor contract. */
export interface Publications {
  readonly network: Caip2;
  readonly contract: Address;
  /**
   * The transactions of the configured key, and of these other accounts, from before a time (Unix seconds) up to the last final block, in the
   * order of the chain: those of one range of blocks after another. It ends with the first answer that is unavailable.
   */
  find(wanted: WantedPublications): AsyncGenerator<PublishedRange | RpcUnavailable>;
  /** What a transaction (lower-case hash) cost its sender. */
  readCost(transaction: Hex): Promise<CostReading>;
  /** Waits for running requests, then drops the connections. */
  close(): Promise<void>;
}

export interface WantedPublications {
  readonly sinceSecs: number;
  /** Names of the log besides the configured one: each recovery gives it another. */
  readonly origins: readonly string[];
  readonly others: readonly string[];
  readonly onProgress: (done: bigint, all: bigint) => void;
}

export interface PublishedRange {
  readonly kind: 'answer';
  readonly published: readonly { readonly transaction: Hex; readonly by: Address }[];
}

type ChainAnchorConfig = Extract<AnchorConfig, { kind: 'chain' }>;

/** A node may search many blocks for one request. */
const timeoutMs = 30_000;
const firstRange = 10_000n;
/** A key publishes at most every few seconds, so that a node which allows it answers for months in one call. */
const widestRange = 1_000_000n;
const anchored = toEventSelector('Anchored(address,bytes32,uint64,bytes32)');

/** @throws TypeError for an invalid URL */
export function openPublications(
  { network, chainId, contract, privateKey }: ChainAnchorConfig,
  origin: string,
  rpcUrl: string,
): Publications {
  const publisher = privateKeyToAddress(privateKey).toLowerCase() as Address;
  const rpc = createRpc(rpcUrl);
  const askOnce = askRightChain(rpc, chainId);
  const ask: Ask = (call) => withRetries(() => askOnce(call, timeoutMs));
  return {
    network,
    contract,
    find: (wanted) => find(ask, { contract, origin, publisher }, wanted),
    readCost: (transaction) => readCost(ask, transaction),
    close: () => rpc.close(),
  };
}

interface Place {
  readonly contract: Address;
  readonly origin: string;
  readonly publisher: Address;
}

async function* find(
  ask: Ask,
  { contract, origin, publisher }: Place,
  { sinceSecs, origins, others, onProgress }: WantedPublications,
): AsyncGenerator<PublishedRange | RpcUnavailable> {
  const final = await askTaggedBlock(ask, 'finalized');
  if (final.kind === 'unavailable') return yield final;
  const first = await findBlockBefore(ask, sinceSecs, final.block);
  if (first.kind === 'unavailable') return yield first;
  const last = final.block.number;
  const accounts = new Map([publisher, ...(others as Address[])].map((by) => [addressWord(by), by]));
  const names = [...new Set([origin, ...origins])].map(originHash);
  const query = { addresses: [contract], topics: [anchored, [...accounts.keys()], names] };
  let range = firstRange;
  let most = widestRange;
  for (let next = first.value; next <= last;) {
    onProgress(next - first.value, last - first.value + 1n);
    const end = next + range - 1n < last ? next + range - 1n : last;
    const answer = await readLogRange(ask, query, next, end);
    if (answer.kind === 'unavailable') {
      if (!mayBeRange(answer) || end === next) return yield answer;
      range = most = (end - next + 1n) / 2n;
      continue;
    }
    const published = answer.value.logs.map(({ transaction, topics }) => ({
      transaction,
      by: accounts.get(topics[1] ?? '0x') ?? publisher,
    }));
    yield { kind: 'answer', published };
    next = end + 1n;
    if (range * 2n <= most) range *= 2n;
  }
}
