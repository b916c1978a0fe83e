import { toFunctionSelector } from 'viem/utils';
import type { Address, Hex } from '../../../../../base/values/primitives.ts';
import {
  addressWord,
  type BlockTag,
  ethCall,
  hexBytes,
  isWithoutState,
} from '../../../../../base/peers/rpc/eth-call.ts';
import { type RpcAnswer, type RpcCall, unavailable } from '../../../../../base/peers/rpc/json-rpc.ts';
import { toQuantity } from '../../../../../base/peers/rpc/rpc-values.ts';
import { nonceBit, permit2Address } from '../../../../rules/schemes/permit2/signature-transfer.ts';
import { type Ask, askLinkedBlock, askTaggedBlock } from '../../blocks.ts';
import { greater } from '../../find-log.ts';
import type { BlockPlace } from '../../transactions.ts';

/** A nonce of an account in Permit2. */
export interface OwnNonce {
  readonly from: Address;
  readonly nonce: Hex;
}

const bitmapSelector = toFunctionSelector('nonceBitmap(address,uint256)');
const bitmapWord = hexBytes.refine((text) => text.length === 66).transform(BigInt);

/** Whether a nonce is used or invalidated at a block. A used one is used for ever. */
export function isNonceUsedCall({ from, nonce }: OwnNonce, at: BlockTag): RpcCall<boolean> {
  const { word, mask } = nonceBit(nonce);
  const data =
    `${bitmapSelector}${addressWord(from).slice(2)}${word.toString(16).padStart(64, '0')}` as const;
  const result = bitmapWord.transform((bits) => (bits & mask) !== 0n);
  return ethCall({ to: permit2Address, data }, result, at);
}

/** Where a nonce was used. */
export type UseBlock =
  | ({ readonly kind: 'found' } & BlockPlace)
  | { readonly kind: 'unused' }
  /** The node no longer has the states of the blocks that it would have to be asked about. */
  | { readonly kind: 'pruned' };

/**
 * The block that used a nonce: unused in the state before it, used in its own. Asks for twice as many requests as the logarithm of its
 * age in blocks, newest blocks first, whose states every node has.
 */
export async function findUseBlock(ask: Ask, own: OwnNonce): Promise<RpcAnswer<UseBlock>> {
  const latest = await askTaggedBlock(ask, 'latest');
  if (latest.kind === 'unavailable') return latest;
  const isUsed = (at: BlockTag): Promise<RpcAnswer<boolean>> => ask(isNonceUsedCall(own, at));
  const now = await isUsed(atHash(latest.block.hash));
  if (now.kind === 'unavailable') return now;
  if (!now.value) return { kind: 'answer', value: { kind: 'unused' } };
  let used = latest.block.number;
  let unused = -1n;
  for (let stride = 1n; used - unused > 1n;) {
    const isNarrowing = unused >= 0n;
    const at = isNarrowing ? (used + unused) / 2n : greater(used - stride, 0n);
    const state = await isUsed(toQuantity(at));
    if (state.kind === 'unavailable')
      return isWithoutState(state) ? { kind: 'answer', value: { kind: 'pruned' } } : state;
    if (state.value) {
      used = at;
      stride *= 2n;
    } else unused = at;
    if (used === 0n) return unavailable('inconsistent');
  }
  return verify(ask, used, isUsed);
}

/** The blocks were asked about by their numbers, and a reorg may have replaced some meanwhile: hashes name them. */
async function verify(
  ask: Ask,
  number: bigint,
  isUsed: (at: BlockTag) => Promise<RpcAnswer<boolean>>,
): Promise<RpcAnswer<UseBlock>> {
  const block = await askLinkedBlock(ask, number);
  if (block.kind === 'unavailable') return block;
  if (block.value === null) return unavailable('missing_block');
  const { hash, parentHash } = block.value;
  const after = await isUsed(atHash(hash));
  if (after.kind === 'unavailable') return after;
  const before = await isUsed(atHash(parentHash));
  if (before.kind === 'unavailable') return before;
  if (!after.value || before.value) return unavailable('answers_differ');
  return { kind: 'answer', value: { kind: 'found', blockNumber: number, blockHash: hash } };
}

export function atHash(blockHash: Hex): BlockTag {
  return { blockHash, requireCanonical: true };
}
