import { toFunctionSelector } from 'viem';
import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import type { ChainTransfer, Evidence } from '../../domain/reconcile/reconcile.ts';
import { type Ask, askBlock, askTaggedBlock, type Block, type BlockAnswer } from './blocks.ts';
import { addressWord, ethCall, hexBytes, isExecutionFailure } from '../rpc/eth-call.ts';
import {
  createRpc,
  type RpcAnswer,
  type RpcCall,
  RpcError,
  type RpcUnavailable,
  unavailable,
} from '../rpc/json-rpc.ts';
import { askRightChain } from '../rpc/chain-id.ts';
import { bytes32, noBlockHash, quantity, toQuantity } from '../rpc/rpc-values.ts';
import { knownTransactionCall } from './known-transaction.ts';
import { logSchema, receiptCall } from './receipt.ts';
import { chainSchemes } from './schemes/schemes.ts';
import { transferOf, transferred } from './transfers.ts';
import { backOffMs } from '../../domain/values/back-off.ts';
import { pause } from '../../runtime/pause.ts';

/** Whose transfers are wanted: of these tokens, to or from these addresses. */
export interface TransferQuery {
  readonly assets: readonly Address[];
  readonly payees: readonly Address[];
}

/** All transfers within a range of blocks, in the order of the chain, and the hash of its last block. */
export interface TransferChunk {
  readonly toHash: Hex;
  readonly transfers: readonly ChainTransfer[];
}

/** What reconciling asks a chain. Answers are of the right chain, or unavailable. */
export interface ChainScanner {
  readonly network: string;
  finalizedBlock(): Promise<BlockAnswer>;
  /** The canonical block at a height; null where there is none. */
  blockAt(number: bigint): Promise<RpcAnswer<Block | null>>;
  /** The first block at a time or later, up to `last`; undefined where `last` is older. */
  firstBlockSince(timestampSecs: number, last: Block): Promise<RpcAnswer<Block | undefined>>;
  /** Asked between two looks at the last block: `answers_differ` where that changed, or the logs are of another. */
  transfers(query: TransferQuery, from: bigint, to: bigint): Promise<RpcAnswer<TransferChunk>>;
  /** What an address holds as of a block; undefined where the node has no state of it. */
  balanceAt(asset: Address, holder: Address, blockHash: Hex): Promise<RpcAnswer<bigint | undefined>>;
  /** `decimals()` at latest; undefined where the contract does not tell. */
  decimals(asset: Address): Promise<RpcAnswer<number | undefined>>;
  evidence(transaction: Hex): Promise<RpcAnswer<Evidence>>;
  close(): Promise<void>;
}

export interface ScannerOptions {
  readonly network: string;
  readonly chainId: number;
  readonly rpcUrl: string;
  /** Of one question, each time it is asked. */
  readonly timeoutMs: number;
}

/** @throws TypeError when the URL is none */
export function createScanner({ network, chainId, rpcUrl, timeoutMs }: ScannerOptions): ChainScanner {
  const rpc = createRpc(rpcUrl);
  const askOnce = askRightChain(rpc, chainId);
  const ask: Ask = (call) => patiently(() => askOnce(call, timeoutMs));
  return {
    network,
    finalizedBlock: () => askTaggedBlock(ask, 'finalized'),
    blockAt: (number) => askBlock(ask, number),
    firstBlockSince: (timestampSecs, last) => firstBlockSince(ask, timestampSecs, last),
    transfers: (query, from, to) => readChunk(ask, network, query, from, to),
    async balanceAt(asset, holder, blockHash) {
      const data = `${balanceSelector}${addressWord(holder).slice(2)}` as const;
      const at = { blockHash, requireCanonical: true } as const;
      const answer = await ask(ethCall({ to: asset, data }, word, at));
      if (answer.kind === 'answer') return { kind: 'answer', value: answer.value ?? 0n };
      const isWithoutState = answer.cause === 'rpc_error' && !isExecutionFailure(answer.error);
      return isWithoutState ? { kind: 'answer', value: undefined } : answer;
    },
    async decimals(asset) {
      const answer = await ask(ethCall({ to: asset, data: decimalsSelector }, word));
      if (answer.kind === 'answer') {
        const isSmall = answer.value !== undefined && answer.value <= 255n;
        return { kind: 'answer', value: isSmall ? Number(answer.value) : undefined };
      }
      return isExecutionFailure(answer.error) ? { kind: 'answer', value: undefined } : answer;
    },
    evidence: (transaction) => readEvidence(ask, network, transaction),
    close: () => rpc.close(),
  };
}

const balanceSelector = toFunctionSelector('balanceOf(address)');
const decimalsSelector = toFunctionSelector('decimals()');

/** A word; undefined where there is no contract to answer. */
const word = hexBytes
  .refine((text) => text === '0x' || text.length === 66)
  .transform((text) => (text === '0x' ? undefined : BigInt(text)));

const maxRetries = 3;
const pauses = { firstMs: 200, longestMs: 800 };

/** Asks again where the node may only have been busy; what it said stands. */
async function patiently<T>(askOnce: () => Promise<RpcAnswer<T>>): Promise<RpcAnswer<T>> {
  for (let failures = 0; ; failures += 1) {
    const answer = await askOnce();
    if (answer.kind === 'answer' || failures === maxRetries || !isPassing(answer)) return answer;
    await pause(backOffMs(pauses, failures));
  }
}

function isPassing({ cause, error }: RpcUnavailable): boolean {
  if (error instanceof RpcError) return /rate limit|too many requests|per second/i.test(error.reason);
  return /^(?:timeout|connection|status_429|status_5\d\d)$/.test(cause);
}

async function firstBlockSince(
  ask: Ask,
  timestampSecs: number,
  last: Block,
): Promise<RpcAnswer<Block | undefined>> {
  if (last.timestampSecs < timestampSecs) return { kind: 'answer', value: undefined };
  let found = last;
  for (let low = 0n; low < found.number;) {
    const middle = (low + found.number) / 2n;
    const answer = await askBlock(ask, middle);
    if (answer.kind === 'unavailable') return answer;
    if (answer.value === null) return unavailable('missing_block');
    if (answer.value.timestampSecs >= timestampSecs) found = answer.value;
    else low = middle + 1n;
  }
  return { kind: 'answer', value: found };
}

/** Some forty thousand logs. */
const logsBytes = 32 * 1024 * 1024;

const placedLog = logSchema.extend({ blockNumber: quantity, blockHash: bytes32 });
type PlacedLog = z.infer<typeof placedLog>;

function logsCall(
  { assets, payees }: TransferQuery,
  side: 'from' | 'to',
  from: bigint,
  to: bigint,
): RpcCall<PlacedLog[]> {
  const words = payees.map(addressWord);
  const topics = side === 'from' ? [transferred, words] : [transferred, null, words];
  const isAsked = (log: PlacedLog): boolean =>
    assets.includes(log.address) &&
    log.topics[0] === transferred &&
    words.includes(log.topics[side === 'from' ? 1 : 2] ?? '0x') &&
    log.blockNumber >= from &&
    log.blockNumber <= to &&
    log.blockHash !== noBlockHash;
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return {
    method: 'eth_getLogs',
    params: [{ address: assets, topics, ...range }],
    result: z.array(placedLog.refine(isAsked)),
    maxResponseBytes: logsBytes,
  };
}

async function readChunk(
  ask: Ask,
  network: string,
  query: TransferQuery,
  from: bigint,
  to: bigint,
): Promise<RpcAnswer<TransferChunk>> {
  const before = await askBlock(ask, to);
  if (before.kind === 'unavailable') return before;
  if (before.value === null) return unavailable('missing_block');
  const came = await ask(logsCall(query, 'to', from, to));
  if (came.kind === 'unavailable') return came;
  const left = await ask(logsCall(query, 'from', from, to));
  if (left.kind === 'unavailable') return left;
  const after = await askBlock(ask, to);
  if (after.kind === 'unavailable') return after;
  const { hash } = before.value;
  const logs = inOrder([...came.value, ...left.value]);
  if (after.value?.hash !== hash || !isOneChain(logs, to, hash)) return unavailable('answers_differ');
  return {
    kind: 'answer',
    value: { toHash: hash, transfers: logs.flatMap((log) => transferIn(network, log)) },
  };
}

/** By block and place within it; what moved between two payees is in both answers, and counts once. */
function inOrder(logs: readonly PlacedLog[]): PlacedLog[] {
  const sorted = logs.toSorted(
    (a, b) => Number(a.blockNumber - b.blockNumber) || Number(a.logIndex - b.logIndex),
  );
  return sorted.filter((log, at) => {
    const last = sorted[at - 1];
    return !(last && isSamePlace(last, log) && last.transactionHash === log.transactionHash);
  });
}

function isSamePlace(one: PlacedLog, other: PlacedLog): boolean {
  return one.blockNumber === other.blockNumber && one.logIndex === other.logIndex;
}

/** No two blocks of one height, and the last block is the one that was asked for. */
function isOneChain(logs: readonly PlacedLog[], to: bigint, toHash: Hex): boolean {
  return logs.every(({ blockNumber, blockHash }, at) => {
    const last = logs[at - 1];
    if (blockNumber === to && blockHash !== toHash) return false;
    return !last || last.blockNumber !== blockNumber || last.blockHash === blockHash;
  });
}

function transferIn(network: string, log: PlacedLog): ChainTransfer[] {
  const moved = transferOf(log);
  if (!moved) return [];
  const { asset, from, to, value: amount, logIndex } = moved;
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  return [{ network, asset, from, to, amount, transaction, blockNumber, blockHash, logIndex }];
}

async function readEvidence(ask: Ask, network: string, transaction: Hex): Promise<RpcAnswer<Evidence>> {
  const answer = await ask(receiptCall(transaction));
  if (answer.kind === 'unavailable') return answer;
  const receipt = answer.value;
  if (receipt?.blockNumber === undefined || receipt.blockNumber === null || receipt.blockHash === null)
    return knownOrAbsent(ask, transaction);
  const { blockNumber, blockHash } = receipt;
  return {
    kind: 'answer',
    value: {
      kind: 'receipt',
      blockNumber,
      isReverted: receipt.status === '0x0',
      transfers: receipt.logs.flatMap((log) => transferIn(network, { ...log, blockNumber, blockHash })),
      authorizations: Object.values(chainSchemes).flatMap((scheme) => scheme.usedAuthorizations(receipt)),
    },
  };
}

async function knownOrAbsent(ask: Ask, transaction: Hex): Promise<RpcAnswer<Evidence>> {
  const known = await ask(knownTransactionCall(transaction));
  if (known.kind === 'unavailable') return known;
  return { kind: 'answer', value: { kind: known.value ? 'pending' : 'absent' } };
}
