import { type Ask, askTaggedBlock, findBlockBefore } from './blocks.ts';
import { mayBeRange } from './log-range.ts';
import { unavailable, type RpcAnswer, type RpcCall } from '../../../base/peers/rpc/json-rpc.ts';

const widestRange = 2_000n;
/** What nearly every node takes: it is tried before anything narrower. */
const usualRange = 50n;
/** Of one look: twelve days of a chain with a block every two seconds; an hour of it if a node answers for ten blocks at a time. */
const maxRequests = 256;

/** Final blocks that earlier looks have searched without finding the log, both ends included. */
export interface SearchedBlocks {
  readonly from: bigint;
  readonly to: bigint;
}

/** What one look leaves for the next one. */
export interface SearchMemory {
  get(): SearchedBlocks | undefined;
  set(searched: SearchedBlocks | undefined): void;
}

const noMemory: SearchMemory = { get: () => undefined, set: () => undefined };

/** Finds a log of which there can be only one, as {@link searchLogs} does. The value is undefined if the node has no such log. */
export function findLog<T>(
  ask: Ask,
  call: LogSearch<T, T>['call'],
  sinceSecs: number,
  memory = noMemory,
): Promise<RpcAnswer<T | undefined>> {
  const pick = ([log, another]: readonly T[]): Promise<RpcAnswer<T | undefined>> =>
    Promise.resolve(another === undefined ? { kind: 'answer', value: log } : unavailable('inconsistent'));
  return searchLogs(ask, { call, pick, sinceSecs, memory });
}

/** What is looked for, in which blocks. */
export interface LogSearch<T, R> {
  /** The logs of a range of blocks that may be it. */
  readonly call: (from: bigint, to: bigint) => RpcCall<T[]>;
  /** The one that is it. */
  readonly pick: (logs: readonly T[]) => Promise<RpcAnswer<R | undefined>>;
  /** Unix seconds by the chain's clock. */
  readonly sinceSecs: number;
  readonly memory: SearchMemory;
}

/**
 * Searches from a time up to the latest block, newest blocks first. A look that would need more requests is unavailable, and the next one
 * continues at its end, so that some look reaches any block. One that reached the oldest block leaves nothing: a node may have left the log out.
 */
export async function searchLogs<T, R>(
  ask: Ask,
  { call, pick, sinceSecs, memory }: LogSearch<T, R>,
): Promise<RpcAnswer<R | undefined>> {
  const latest = await askTaggedBlock(ask, 'latest');
  if (latest.kind === 'unavailable') return latest;
  const older = await findBlockBefore(ask, sinceSecs, latest.block);
  if (older.kind === 'unavailable') return older;
  const oldest = older.value;
  const known = memory.get();
  memory.set(undefined);
  let to = latest.block.number;
  let range = lesser(widestRange, to - oldest + 1n);
  for (let request = 0; request < maxRequests; request++) {
    if (known && to >= known.from && to <= known.to) to = known.from - 1n;
    if (to < oldest) return { kind: 'answer', value: undefined };
    const lowest = known && to > known.to ? greater(known.to + 1n, oldest) : oldest;
    const from = greater(to - range + 1n, lowest);
    const answer = await ask(call(from, to));
    if (answer.kind === 'answer') {
      const picked = await pick(answer.value);
      if (picked.kind === 'unavailable' || picked.value !== undefined || from === oldest) return picked;
      to = from - 1n;
    } else {
      if (!mayBeRange(answer) || range === 1n) {
        // the blocks before are still known
        memory.set(known);
        return answer;
      }
      range = range > usualRange ? greater(range / 2n, usualRange) : range / 2n;
    }
  }
  const final = await askTaggedBlock(ask, 'finalized');
  if (final.kind === 'answer' && final.block.number > to)
    memory.set({ from: to + 1n, to: lesser(final.block.number, latest.block.number) });
  return unavailable('range_too_long');
}

function lesser(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

export function greater(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
