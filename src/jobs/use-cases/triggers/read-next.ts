import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import type { Checkpoint } from '../../../base/values/triggers/chain-position.ts';
import type { Block } from '../../../payments/peers/chain/blocks.ts';
import { mayBeRange } from '../../../payments/peers/chain/log-range.ts';
import type { LogFilter } from '../../../payments/peers/chain/logs.ts';
import { type ChainLook, present, type Problem, problemOf, type ReadAhead } from './chain-look.ts';

/** The next blocks after the cursor, and their logs in order. */
export interface NextBlocks {
  readonly kind: 'blocks';
  readonly last: Checkpoint;
  readonly logs: readonly ChainLog[];
}

/** Some nodes allow no more. */
const widestRange = 2_000n;
/** The range is doubled after this many answers in a row. */
const growAfter = 8;
/**
 * So near to the head, blocks are read one by one, by their hash: a lagging node at the same address answers a range with the logs that it
 * has, and a block that it does not have not at all.
 */
const nearBlocks = 64n;

export function newReadAhead(): ReadAhead {
  return { range: widestRange, successes: 0, fired: new Set() };
}

/** Reads the blocks after the cursor, up to the head at most. */
export async function readNext(
  look: ChainLook,
  cursor: Checkpoint,
  head: Block,
): Promise<NextBlocks | Problem> {
  const { terms } = look.trigger;
  const query = { addresses: terms.addresses, topics: terms.event.topics };
  const left = head.number - cursor.number;
  if (left <= nearBlocks) return readBlock(look, query, cursor);
  const { ahead, reader } = look;
  // the blocks near to a head that is not final are left for one by one
  const far = terms.finality === 'final' ? left : left - nearBlocks;
  for (;;) {
    const count = ahead.range < far ? ahead.range : far;
    const from = cursor.number + 1n;
    const answer = await reader.logRange(query, from, cursor.number + count);
    if (answer.kind === 'answer') {
      widen(ahead);
      return { kind: 'blocks', ...answer.value };
    }
    if (!mayBeRange(answer)) return problemOf(answer);
    if (count === 1n) return readBlock(look, query, cursor);
    ahead.range = count / 2n;
    ahead.successes = 0;
  }
}

async function readBlock(
  { reader }: ChainLook,
  query: LogFilter,
  cursor: Checkpoint,
): Promise<NextBlocks | Problem> {
  const next = present(await reader.linkedBlockAt(cursor.number + 1n));
  if (next.kind === 'problem') return next;
  const { number, hash, timestampSecs, parentHash } = next.value;
  // the next look finds where the chain was replaced, if it was
  if (parentHash !== cursor.hash) return { kind: 'problem', problem: 'answers_differ' };
  const last = { number, hash, timestampSecs };
  const answer = await reader.blockLogs(query, last);
  return answer.kind === 'answer' ? { kind: 'blocks', last, logs: answer.value } : problemOf(answer);
}

function widen(ahead: ReadAhead): void {
  ahead.successes += 1;
  if (ahead.successes % growAfter === 0 && ahead.range < widestRange) ahead.range *= 2n;
}
