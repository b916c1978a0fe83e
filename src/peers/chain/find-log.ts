import { type Ask, askTaggedBlock, findBlockBefore } from './blocks.ts';
import { unavailable, type RpcAnswer, type RpcCall, type RpcUnavailable } from '../rpc/json-rpc.ts';

const widestRange = 2_000n;
/** Where a node refuses even this, narrower ranges would take too many questions. */
const narrowestRange = 50n;
/** Twelve days of a chain with a block every two seconds. */
const mostQuestions = 256;

/**
 * The one log that there can be of something, since a time up to the latest block; newest blocks first. Undefined in the
 * answer where the node has none.
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
  for (let question = 0; question < mostQuestions; question++) {
    const from = greater(to - range + 1n, oldest);
    const answer = await ask(logsCall(from, to));
    if (answer.kind === 'answer') {
      const [log, another] = answer.value;
      if (another !== undefined) return unavailable('inconsistent');
      if (log !== undefined || from === oldest) return { kind: 'answer', value: log };
      to = from - 1n;
    } else {
      if (!mayBeRange(answer) || range <= narrowestRange) return answer;
      range = greater(range / 2n, narrowestRange);
    }
  }
  return unavailable('range_too_long');
}

/** Nodes word a refused range each in its own way; some beside an HTTP status that others never use for it. */
function mayBeRange({ cause }: RpcUnavailable): boolean {
  return cause === 'rpc_error' || cause === 'status_400' || cause === 'status_413';
}

function lesser(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function greater(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
