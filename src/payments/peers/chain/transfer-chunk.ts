import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { ChainTransfer } from '../../rules/chain-transfer.ts';
import { addressWord } from '../../../base/peers/rpc/eth-call.ts';
import { type RpcAnswer, type RpcCall, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { type Ask, askBlock } from './blocks.ts';
import { type Log, logsCall } from './logs.ts';
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

function transfersCall(
  network: string,
  { assets, payees }: TransferQuery,
  side: 'from' | 'to',
  from: bigint,
  to: bigint,
): RpcCall<ChainTransfer[]> {
  const words = payees.map(addressWord);
  const topics = side === 'from' ? [[transferred], words] : [[transferred], null, words];
  // of a log, no more is kept than is needed: a single block may have a hundred thousand
  return logsCall({ addresses: assets, topics }, { from, to }, (log) => transferIn(network, log));
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
  const incoming = await ask(transfersCall(network, query, 'to', from, to));
  if (incoming.kind === 'unavailable') return incoming;
  const outgoing = await ask(transfersCall(network, query, 'from', from, to));
  if (outgoing.kind === 'unavailable') return outgoing;
  const after = await askBlock(ask, to);
  if (after.kind === 'unavailable') return after;
  const { hash } = before.value;
  const transfers = inOrder([...incoming.value, ...outgoing.value]);
  if (after.value?.hash !== hash || !isOneChain(transfers, to, hash)) return unavailable('answers_differ');
  return { kind: 'answer', value: { toHash: hash, transfers } };
}

/** By block and log index. A transfer between two payees is in both answers, and is listed once. */
function inOrder(transfers: readonly ChainTransfer[]): ChainTransfer[] {
  const sorted = transfers.toSorted(
    (a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex,
  );
  return sorted.filter((one, at) => {
    const last = sorted[at - 1];
    return !(last && isSamePlace(last, one) && last.transaction === one.transaction);
  });
}

function isSamePlace(one: ChainTransfer, other: ChainTransfer): boolean {
  return one.blockNumber === other.blockNumber && one.logIndex === other.logIndex;
}

/** All transfers of a height name one block, and those of the last height the requested block. */
function isOneChain(transfers: readonly ChainTransfer[], to: bigint, toHash: Hex): boolean {
  return transfers.every(({ blockNumber, blockHash }, at) => {
    const last = transfers[at - 1];
    if (blockNumber === to && blockHash !== toHash) return false;
    return !last || last.blockNumber !== blockNumber || last.blockHash === blockHash;
  });
}

function transferIn(network: string, log: Log): ChainTransfer | undefined {
  const moved = transferOf(log);
  if (!moved) return undefined;
  const { asset, from, to, value: amount, logIndex } = moved;
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  return { network, asset, from, to, amount, transaction, blockNumber, blockHash, logIndex };
}
