import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import type { ChainTransfer } from '../../domain/reconcile/reconcile.ts';
import { addressWord } from '../rpc/eth-call.ts';
import { type RpcAnswer, type RpcCall, unavailable } from '../rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity, toQuantity } from '../rpc/rpc-values.ts';
import { type Ask, askBlock } from './blocks.ts';
import { logSchema } from './receipt.ts';
import { transferOf, transferred } from './transfers.ts';

/** Selects the transfers of these tokens to or from these addresses. */
export interface TransferQuery {
  readonly assets: readonly Address[];
  readonly payees: readonly Address[];
}

/** All transfers in a range of blocks, in chain order, and the hash of its last block. */
export interface TransferChunk {
  readonly toHash: Hex;
  readonly transfers: readonly ChainTransfer[];
}

/** About forty thousand logs. */
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
  const isRequested = (log: PlacedLog): boolean =>
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
    result: z.array(placedLog.refine(isRequested)),
    maxResponseBytes: logsBytes,
  };
}

/** Reads between two looks at the last block: `answers_differ` where its hash changed, or a log names another. */
export async function readChunk(
  ask: Ask,
  network: string,
  query: TransferQuery,
  from: bigint,
  to: bigint,
): Promise<RpcAnswer<TransferChunk>> {
  const before = await askBlock(ask, to);
  if (before.kind === 'unavailable') return before;
  if (before.value === null) return unavailable('missing_block');
  const incoming = await ask(logsCall(query, 'to', from, to));
  if (incoming.kind === 'unavailable') return incoming;
  const outgoing = await ask(logsCall(query, 'from', from, to));
  if (outgoing.kind === 'unavailable') return outgoing;
  const after = await askBlock(ask, to);
  if (after.kind === 'unavailable') return after;
  const { hash } = before.value;
  const logs = inOrder([...incoming.value, ...outgoing.value]);
  if (after.value?.hash !== hash || !isOneChain(logs, to, hash)) return unavailable('answers_differ');
  return {
    kind: 'answer',
    value: { toHash: hash, transfers: logs.flatMap((log) => transferIn(network, log)) },
  };
}

/** By block and log index. A transfer between two payees is in both answers, and is listed once. */
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

/** All logs of a height name one block, and those of the last height the requested block. */
function isOneChain(logs: readonly PlacedLog[], to: bigint, toHash: Hex): boolean {
  return logs.every(({ blockNumber, blockHash }, at) => {
    const last = logs[at - 1];
    if (blockNumber === to && blockHash !== toHash) return false;
    return !last || last.blockNumber !== blockNumber || last.blockHash === blockHash;
  });
}

export function transferIn(network: string, log: PlacedLog): ChainTransfer[] {
  const moved = transferOf(log);
  if (!moved) return [];
  const { asset, from, to, value: amount, logIndex } = moved;
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  return [{ network, asset, from, to, amount, transaction, blockNumber, blockHash, logIndex }];
}
