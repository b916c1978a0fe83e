import type { Hex } from '../../../base/values/primitives.ts';
import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import { type RpcAnswer, type RpcUnavailable, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { type Ask, askBlock, type Block } from './blocks.ts';
import { type Log, type LogFilter, logsCall } from './logs.ts';

/** Half a megabyte of data: its gas would be most of a block's. */
const longestElementBytes = 1024 * 1024;
/** About forty thousand logs: of a block there is no narrower question. */
const blockReading = { maxBytes: 32 * 1024 * 1024, longestElementBytes };
/** About three thousand logs. */
const rangeReading = { maxBytes: 2 * 1024 * 1024, longestElementBytes };

function chainLog({ transactionHash: transaction, ...log }: Log): ChainLog {
  const { address, topics, data, blockNumber, blockHash, logIndex } = log;
  return { address, topics, data: data as Hex, blockNumber, blockHash, transaction, logIndex };
}

/** The logs of one block, which the node must have: a lagging node has no logs of it. */
export async function askBlockLogs(
  ask: Ask,
  filter: LogFilter,
  { number, hash: blockHash }: Block,
): Promise<RpcAnswer<readonly ChainLog[]>> {
  const answer = await ask(logsCall(filter, { blockHash, number }, chainLog, blockReading));
  return answer.kind === 'answer' ? ordered(answer.value) : answer;
}

/** The logs of a range of blocks, or what stands for them, and its last block. */
export interface LogRange<T> {
  readonly last: Block;
  readonly logs: readonly T[];
}

export function readLogRange(
  ask: Ask,
  filter: LogFilter,
  from: bigint,
  to: bigint,
): Promise<RpcAnswer<LogRange<ChainLog>>> {
  return readBetweenLooks(ask, to, () => ask(logsCall(filter, { from, to }, chainLog, rangeReading)));
}

type Placed = Pick<ChainLog, 'blockNumber' | 'logIndex'> & { readonly blockHash: string };

/** Reads between two looks at the last block: `answers_differ` where its hash changed, or a log names another. */
export async function readBetweenLooks<T extends Placed>(
  ask: Ask,
  to: bigint,
  read: () => Promise<RpcAnswer<readonly T[]>>,
): Promise<RpcAnswer<LogRange<T>>> {
  const before = await askBlock(ask, to);
  if (before.kind === 'unavailable') return before;
  if (before.value === null) return unavailable('missing_block');
  const last = before.value;
  const answer = await read();
  if (answer.kind === 'unavailable') return answer;
  const after = await askBlock(ask, to);
  if (after.kind === 'unavailable') return after;
  const logs = ordered(answer.value);
  if (logs.kind === 'unavailable') return logs;
  const isOfLast = logs.value.every(
    ({ blockNumber, blockHash }) => blockNumber < to || blockHash === last.hash,
  );
  if (after.value?.hash !== last.hash || !isOfLast) return unavailable('answers_differ');
  return { kind: 'answer', value: { last, logs: logs.value } };
}

/** By block and log index. Two logs at one place, or two blocks of one height, are not one chain: `answers_differ`. */
function ordered<T extends Placed>(logs: readonly T[]): RpcAnswer<readonly T[]> {
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
