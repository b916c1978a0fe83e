import { z } from 'zod';
import type { Hex } from '../../../base/values/primitives.ts';
import {
  unavailable,
  type RpcAnswer,
  type RpcCall,
  type RpcUnavailable,
} from '../../../base/peers/rpc/json-rpc.ts';
import { bytes32, quantity, toQuantity } from '../../../base/peers/rpc/rpc-values.ts';
import { outlinedCall } from '../../../base/peers/rpc/eth-call.ts';

export interface Block {
  readonly number: bigint;
  readonly hash: Hex;
  readonly timestampSecs: number;
}

/** A block that names the one before it. */
export interface LinkedBlock extends Block {
  readonly parentHash: Hex;
}

export type BlockAnswer = { readonly kind: 'answer'; readonly block: Block } | RpcUnavailable;

/** `hash` is undefined if the chain has no block of that number. */
export type BlockHashAnswer = { readonly kind: 'answer'; readonly hash: Hex | undefined } | RpcUnavailable;

/** Sends one request to a chain, within the time-out of a request. */
export type Ask = <T>(call: RpcCall<T>) => Promise<RpcAnswer<T>>;

const blockFields = z.object({
  number: quantity,
  hash: bytes32,
  timestamp: quantity.refine((secs) => secs <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number),
});

const blockSchema = blockFields.transform(({ number, hash, timestamp }): Block => ({
  number,
  hash,
  timestampSecs: timestamp,
}));

const linkedBlockSchema = blockFields
  .extend({ parentHash: bytes32 })
  .transform(({ timestamp, ...block }): LinkedBlock => ({ ...block, timestampSecs: timestamp }));

function blockCall<T extends Block>(
  at: string,
  schema: z.ZodType<T>,
  isRequested: (block: Block) => boolean,
): RpcCall<T | null> {
  // the list of its transactions is passed over
  return outlinedCall('eth_getBlockByNumber', [at, false], schema.refine(isRequested).nullable());
}

/** The canonical block at a height; null if there is none. */
export function askBlock(ask: Ask, number: bigint): Promise<RpcAnswer<Block | null>> {
  return ask(blockCall(toQuantity(number), blockSchema, (block) => block.number === number));
}

/** The canonical block at a height, with its parent; null if there is none. */
export function askLinkedBlock(ask: Ask, number: bigint): Promise<RpcAnswer<LinkedBlock | null>> {
  return ask(blockCall(toQuantity(number), linkedBlockSchema, (block) => block.number === number));
}

/** The last block, or the last final one. */
export async function askTaggedBlock(ask: Ask, tag: 'latest' | 'finalized'): Promise<BlockAnswer> {
  const answer = await ask(blockCall(tag, blockSchema, () => true));
  if (answer.kind === 'unavailable') return answer;
  return answer.value === null ? unavailable(`no_${tag}_block`) : { kind: 'answer', block: answer.value };
}

/** Within this distance, reading the logs in between costs less than one more request for a block. */
const nearEnough = 1_000n;
const strideGrowth = 4n;

/**
 * The block at which a search for events since a time begins: one that is older than that, or the chain's first.
 * Strides back from `latest`, then halves: about ten requests for a week, and at most a thousand blocks too early.
 */
export async function findBlockBefore(
  ask: Ask,
  timestampSecs: number,
  latest: Block,
): Promise<RpcAnswer<bigint>> {
  let older = 0n;
  let newer = latest.number;
  for (let stride = nearEnough; older === 0n && newer > stride; stride *= strideGrowth) {
    const answer = await isOlder(ask, newer - stride, timestampSecs);
    if (answer.kind === 'unavailable') return answer;
    if (answer.value) older = newer - stride;
    else newer -= stride;
  }
  while (newer - older > nearEnough) {
    const middle = (older + newer) / 2n;
    const answer = await isOlder(ask, middle, timestampSecs);
    if (answer.kind === 'unavailable') return answer;
    if (answer.value) older = middle;
    else newer = middle;
  }
  return { kind: 'answer', value: older };
}

async function isOlder(ask: Ask, number: bigint, timestampSecs: number): Promise<RpcAnswer<boolean>> {
  const answer = await askBlock(ask, number);
  if (answer.kind === 'unavailable') return answer;
  if (answer.value === null) return unavailable('missing_block');
  return { kind: 'answer', value: answer.value.timestampSecs < timestampSecs };
}

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
