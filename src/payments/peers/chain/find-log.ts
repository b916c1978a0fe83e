import { type Ask, askTaggedBlock, findBlockBefore } from './blocks.ts';
import { mayBeRange } from './log-range.ts';
import { unavailable, type RpcAnswer, type RpcCall } from '../../../base/peers/rpc/json-rpc.ts';

const widestRange = 2_000n;
/** What nearly every node takes: it is tried before anything narrower. */
const usualRange = 50n;
/** Twelve days of a chain with a block every two seconds; an hour of it where a node answers for ten blocks at a time. */
const maxRequests = 256;

/**
 * Finds a log of which there can be only one, from a time up to the latest block, newest blocks first. The value is undefined
 * where the node has none.
 */
export async function findLog<T>(
  ask: Ask,
  logsCall: (from: bigint, to: bigint) => RpcCall<T[]>,
  sinceSecs: number,
): Promise<RpcAnswer<T | undefined>> {
  const latest = await askTaggedBlock(ask, 'latest');
  if (latest.kind === 'unavailable') return latest;
  const older = await findBlockBefore(ask, sinceSecs, latest.block);
  if (older.kind === 'unavailable') return older;
  const oldest = older.value;
  let to = latest.block.number;
  let range = lesser(widestRange, to - oldest + 1n);
  for (let request = 0; request < maxRequests; request++) {
    const from = greater(to - range + 1n, oldest);
    const answer = await ask(logsCall(from, to));
    if (answer.kind === 'answer') {
      const [log, another] = answer.value;
      if (another !== undefined) return unavailable('inconsistent');
      if (log !== undefined || from === oldest) return { kind: 'answer', value: log };
      to = from - 1n;
    } else {
      if (!mayBeRange(answer) || range === 1n) return answer;
      range = range > usualRange ? greater(range / 2n, usualRange) : range / 2n;
    }
  }
  return unavailable('range_too_long');
}

function lesser(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function greater(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
