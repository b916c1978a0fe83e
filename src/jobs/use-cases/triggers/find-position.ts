import type { ChainPosition, Checkpoint } from '../../../base/values/triggers/chain-position.ts';
import type { Block } from '../../../payments/peers/chain/blocks.ts';
import { type ChainLook, present, type Problem, problemOf } from './chain-look.ts';

type Found = { readonly kind: 'position'; readonly position: ChainPosition } | Problem;

/**
 * Where a trigger begins that has no position: before its first block, where it names one; else where it was when it was configured in another
 * way, so that no event is between the two; else at the head. `ahead`: the first block is not there yet.
 */
export async function firstPosition(
  look: ChainLook,
  earlier: ChainPosition | undefined,
  head: Block,
): Promise<Found | { readonly kind: 'ahead' }> {
  const { startBlock } = look.trigger.terms;
  if (startBlock === undefined)
    return earlier ? newestCanonical(look, earlier, head) : { kind: 'position', position: [head] };
  const before = startBlock === 0n ? 0n : startBlock - 1n;
  if (before > head.number) return { kind: 'ahead' };
  const block = present(await look.reader.blockAt(before));
  return block.kind === 'present' ? { kind: 'position', position: [block.value] } : block;
}

/**
 * The newest checkpoint that the chain still has, and not above the head. Where it has none of them, the height of the oldest one: what was read
 * above it is read again.
 */
export async function newestCanonical(
  { reader }: ChainLook,
  position: ChainPosition,
  head: Block,
): Promise<Found> {
  for (const [at, checkpoint] of position.entries()) {
    if (checkpoint.number > head.number) continue;
    const answer = await reader.blockAt(checkpoint.number);
    if (answer.kind === 'unavailable') return problemOf(answer);
    if (answer.value?.hash === checkpoint.hash)
      return { kind: 'position', position: [checkpoint, ...position.slice(at + 1)] };
  }
  const oldest: Checkpoint = position.at(-1) ?? position[0];
  const height = oldest.number < head.number ? oldest.number : head.number;
  const block = present(await reader.blockAt(height));
  return block.kind === 'present' ? { kind: 'position', position: [block.value] } : block;
}
