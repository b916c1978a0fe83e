import { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { longAnswer, type ReadingLimits } from '../../../base/peers/rpc/answer-reader.ts';
import { hexBytes, smallAnswerBytes } from '../../../base/peers/rpc/eth-call.ts';
import { type RpcCall, type RpcAnswer, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import {
  address,
  bytes32,
  noBlockHash,
  quantity,
  safeQuantity,
  toQuantity,
} from '../../../base/peers/rpc/rpc-values.ts';
import { fits, type Topics } from '../../../base/values/triggers/chain-event.ts';
import type { Ask } from './blocks.ts';

const logSchema = z.object({
  address,
  topics: z.array(bytes32).max(4),
  data: hexBytes,
  logIndex: safeQuantity,
  transactionHash: bytes32,
  blockNumber: quantity,
  blockHash: bytes32.refine((hash) => hash !== noBlockHash),
  // only newer nodes send it
  blockTimestamp: quantity.nullish(),
  removed: z.literal(false).optional(),
});
export type Log = z.infer<typeof logSchema>;

/** Selects logs as a node does: by their contract, and by their topics in order. */
export interface LogFilter {
  /** Undefined: of any contract. */
  readonly addresses: readonly Address[] | undefined;
  readonly topics: Topics;
}

/** One block by its hash, which a node answers for only if it has that very block; or blocks by their numbers, both ends included. */
export type LogPlace =
  | { readonly blockHash: Hex; readonly number?: bigint }
  | { readonly from: bigint; readonly to: bigint };

/** How long an answer may be, and each of its logs. */
type LogsReading = Pick<ReadingLimits<Log>, 'maxBytes' | 'longestElementBytes'>;

/** About forty thousand logs: if a range has more, fewer blocks are asked for. */
const rangeBytes = 32 * 1024 * 1024;

/**
 * The logs of a filter, of each of them what `keep` keeps. They are read one by one, so that the answer for a single block may be as
 * long as that block's gas allows; the answer for several blocks is not, since they can be asked for one by one. An answer with a
 * log that was not asked for is malformed as a whole: nothing in it is believed.
 */
export function logsCall<Kept>(
  filter: LogFilter,
  place: LogPlace,
  keep: (log: Log) => Kept | undefined,
  reading = defaultReading(place),
): RpcCall<Kept[]> {
  const { addresses, topics } = filter;
  const asked = logSchema.refine((log) => isIn(place, log) && isOf(filter, log));
  const where =
    'blockHash' in place
      ? { blockHash: place.blockHash }
      : { fromBlock: toQuantity(place.from), toBlock: toQuantity(place.to) };
  return {
    method: 'eth_getLogs',
    params: [{ ...(addresses && { address: addresses }), topics, ...where }],
    result: z.array(z.custom<Kept>()),
    reading: { ...reading, keep: (element) => keep(asked.parse(element)) },
  };
}

function defaultReading(place: LogPlace): LogsReading {
  const isOneBlock = 'blockHash' in place || place.from === place.to;
  return { maxBytes: isOneBlock ? longAnswer.maxBytes : rangeBytes };
}

/** The same where there can be one log at most: a long answer is none. */
export function singleLogCall(filter: LogFilter, place: LogPlace): RpcCall<Log[]> {
  return logsCall(filter, place, (log) => log, { maxBytes: smallAnswerBytes });
}

function isIn(place: LogPlace, { blockHash, blockNumber }: Log): boolean {
  if ('blockHash' in place)
    return blockHash === place.blockHash && blockNumber === (place.number ?? blockNumber);
  return blockNumber >= place.from && blockNumber <= place.to;
}

function isOf({ addresses, topics }: LogFilter, log: Log): boolean {
  return fits(topics, log) && (addresses?.includes(log.address) ?? true);
}

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
  const logs = answer.value.toSorted((a, b) => a.logIndex - b.logIndex);
  const isTwice = logs.some(({ logIndex }, at) => logIndex === logs[at - 1]?.logIndex);
  return isTwice ? unavailable('inconsistent') : { kind: 'answer', value: logs };
}
