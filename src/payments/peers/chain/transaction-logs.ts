import type { Hex } from '../../../base/values/primitives.ts';
import { type RpcAnswer, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { type Log, type LogFilter, logsCall } from './logs.ts';

/** The logs of a transaction that a filter selects, in their order: those of its block, read by its hash. */
export async function readTransactionLogs(
  ask: Ask,
  transaction: Hex,
  filter: LogFilter,
  blockHash: Hex,
): Promise<RpcAnswer<readonly Log[]>> {
  const isOwn = (log: Log): Log | undefined => (log.transactionHash === transaction ? log : undefined);
  const answer = await ask(logsCall(filter, { blockHash }, isOwn));
  if (answer.kind === 'unavailable') return answer;
  const logs = answer.value.toSorted((a, b) => Number(a.logIndex - b.logIndex));
  const isTwice = logs.some(({ logIndex }, at) => logIndex === logs[at - 1]?.logIndex);
  return isTwice ? unavailable('inconsistent') : { kind: 'answer', value: logs };
}
