import type { Hex } from '../../../base/values/primitives.ts';
import type { RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { type Ask, askBlock, type Block, type BlockAnswer } from './blocks.ts';

/** Whether a block that a node has named is final. */
export type BlockFinality =
  | { readonly kind: 'final'; readonly block: Block }
  /** Its height is above the last final one. */
  | { readonly kind: 'above'; readonly finalNumber: bigint }
  /** The canonical chain has another block at its height, or the node has no block there: `hash` is undefined then. */
  | { readonly kind: 'other'; readonly hash: Hex | undefined }
  | RpcUnavailable;

/**
 * Compares hashes: another block may have the same number.
 * @param askFinalized may share its request with others
 */
export async function askFinality(
  ask: Ask,
  askFinalized: () => Promise<BlockAnswer>,
  { number, hash }: Pick<Block, 'number' | 'hash'>,
): Promise<BlockFinality> {
  const finalized = await askFinalized();
  if (finalized.kind === 'unavailable') return finalized;
  if (finalized.block.number < number) return { kind: 'above', finalNumber: finalized.block.number };
  const at = await askBlock(ask, number);
  if (at.kind === 'unavailable') return at;
  return at.value?.hash === hash
    ? { kind: 'final', block: at.value }
    : { kind: 'other', hash: at.value?.hash };
}
