import { z } from 'zod';
import { fits, type Topics } from '../../../base/values/triggers/chain-event.ts';
import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import {
  type RpcAnswer,
  type RpcCall,
  type RpcUnavailable,
  unavailable,
} from '../../../base/peers/rpc/json-rpc.ts';
import { toQuantity, safeQuantity } from '../../../base/peers/rpc/rpc-values.ts';
import { type Ask, askBlock, type Block } from './blocks.ts';
import { logSchema } from './logs.ts';

/** Selects the logs of these contracts with these topics. */
export interface LogQuery {
  readonly addresses: readonly Address[];
  readonly topics: Topics;
}

/** About forty thousand logs: of a block there is no narrower question. */
const blockLogsBytes = 32 * 1024 * 1024;
/** About three thousand logs. */
const rangeLogsBytes = 2 * 1024 * 1024;
/** Half a megabyte of data: its gas would be most of a block's. */
const maxLogBytes = 1024 * 1024;

const placedLog = logSchema
  .extend({ logIndex: safeQuantity })
  .transform(({ address, topics, data, blockNumber, blockHash, transactionHash, logIndex }): ChainLog => ({
    address,
    topics,
    data: data as Hex,
    blockNumber,
    blockHash,
    transaction: transactionHash,
    logIndex,
  }));

/** An answer with a log that was not asked for is malformed as a whole: nothing in it is believed. */
function logsCall(
  { addresses, topics }: LogQuery,
  place: Readonly<Record<string, Hex>>,
  maxBytes: number,
  isInPlace: (log: ChainLog) => boolean,
): RpcCall<ChainLog[]> {
  const isRequested = (log: ChainLog): boolean =>
    addresses.includes(log.address) && fits(topics, log) && isInPlace(log);
  const asked = placedLog.refine(isRequested);
  return {
    method: 'eth_getLogs',
    params: [{ address: addresses, topics, ...place }],
    result: z.array(z.custom<ChainLog>()),
    // one by one, as they arrive
    reading: { maxBytes, longestElementBytes: maxLogBytes, keep: (element) => asked.parse(element) },
  };
}

/** The logs of one block, which the node must have: a lagging node has no logs of it. */
export async function askBlockLogs(
  ask: Ask,
  query: LogQuery,
  { number, hash }: Block,
): Promise<RpcAnswer<readonly ChainLog[]>> {
  const isInPlace = ({ blockNumber, blockHash }: ChainLog): boolean =>
    blockNumber === number && blockHash === hash;
  const answer = await ask(logsCall(query, { blockHash: hash }, blockLogsBytes, isInPlace));
  return answer.kind === 'answer' ? ordered(answer.value) : answer;
}

/** The logs of a range of blocks, and its last block. */
export interface LogRange {
  readonly last: Block;
  readonly logs: readonly ChainLog[];
}

/** Reads between two looks at the last block: `answers_differ` where its hash changed, or a log names another. */
export async function readLogRange(
  ask: Ask,
  query: LogQuery,
  from: bigint,
  to: bigint,
): Promise<RpcAnswer<LogRange>> {
  const before = await askBlock(ask, to);
  if (before.kind === 'unavailable') return before;
  if (before.value === null) return unavailable('missing_block');
  const last = before.value;
  const isInPlace = ({ blockNumber, blockHash }: ChainLog): boolean =>
    blockNumber >= from && blockNumber <= to && (blockNumber < to || blockHash === last.hash);
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  const answer = await ask(logsCall(query, range, rangeLogsBytes, isInPlace));
  if (answer.kind === 'unavailable') return answer;
  const logs = ordered(answer.value);
  if (logs.kind === 'unavailable') return logs;
  const after = await askBlock(ask, to);
  if (after.kind === 'unavailable') return after;
  if (after.value?.hash !== last.hash) return unavailable('answers_differ');
  return { kind: 'answer', value: { last, logs: logs.value } };
}

/** By block and log index. Two logs at one place, or two blocks of one height, are not one chain: `answers_differ`. */
function ordered(logs: readonly ChainLog[]): RpcAnswer<readonly ChainLog[]> {
  const sorted = logs.toSorted((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
  const isOneChain = sorted.every((log, at) => {
    const last = sorted[at - 1];
    if (!last || last.blockNumber !== log.blockNumber) return true;
    return last.blockHash === log.blockHash && last.logIndex !== log.logIndex;
  });
  return isOneChain ? { kind: 'answer', value: sorted } : unavailable('answers_differ');
}

/** Whether a narrower range of blocks may get an answer. Each node refuses a range with its own message, some with an HTTP status. */
export function mayBeRange({ cause }: RpcUnavailable): boolean {
  return /^(?:rpc_error|status_400|status_413|too_large)$/.test(cause);
}
