import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { ChainTransfer } from '../../rules/chain-transfer.ts';
import { addressWord } from '../../../base/peers/rpc/eth-call.ts';
import type { RpcAnswer, RpcCall } from '../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { readBetweenLooks } from './log-range.ts';
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

/** Unavailable with `answers_differ` where the chain changed during the reading. */
export async function readChunk(
  ask: Ask,
  network: string,
  query: TransferQuery,
  from: bigint,
  to: bigint,
): Promise<RpcAnswer<TransferChunk>> {
  const read = await readBetweenLooks(ask, to, async () => {
    const incoming = await ask(transfersCall(network, query, 'to', from, to));
    if (incoming.kind === 'unavailable') return incoming;
    const outgoing = await ask(transfersCall(network, query, 'from', from, to));
    if (outgoing.kind === 'unavailable') return outgoing;
    return { kind: 'answer', value: listedOnce([...incoming.value, ...outgoing.value]) };
  });
  if (read.kind === 'unavailable') return read;
  const { last, logs: transfers } = read.value;
  return { kind: 'answer', value: { toHash: last.hash, transfers } };
}

/** A transfer between two payees is in both answers. */
function listedOnce(transfers: readonly ChainTransfer[]): readonly ChainTransfer[] {
  const places = new Map(
    transfers.map((one) => [`${one.blockNumber}/${one.logIndex}/${one.transaction}`, one]),
  );
  return [...places.values()];
}

function transferIn(network: string, log: Log): ChainTransfer | undefined {
  const moved = transferOf(log);
  if (!moved) return undefined;
  const { asset, from, to, value: amount, logIndex } = moved;
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  return { network, asset, from, to, amount, transaction, blockNumber, blockHash, logIndex };
}
