import { toEventSelector } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import {
  type Ask,
  askTaggedBlock,
  type BlockAnswer,
  askFinality,
} from '../../../payments/peers/chain/blocks.ts';
import { findLog } from '../../../payments/peers/chain/find-log.ts';
import { singleLogCall } from '../../../payments/peers/chain/logs.ts';
import type { RpcAnswer, RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { blockOf, receiptCall } from '../../../payments/peers/chain/transactions.ts';

/** A transaction and its block, which was canonical at the time of the call. */
export interface Landed {
  readonly transaction: Hex;
  readonly block: { readonly number: bigint; readonly hash: Hex };
}

/** How a spend ended on its chain. */
export interface SpendEnd extends Landed {
  readonly how: 'claimed' | 'reclaimed';
}

/** `open`: its block can still be reorganized out. `reorged`: its block was. */
export type Finality = 'final' | 'open' | 'reorged';

const sharedMs = 500;

const claimed = toEventSelector('PaymentClaimed(bytes32,address,uint256)');
const reclaimed = toEventSelector('CreditsReclaimed(bytes32,bytes32,uint256)');

/** A spend's end by the contract's own log; undefined in the answer when the node has no such log since then. */
export async function findSpendEnd(
  ask: Ask,
  contract: Address,
  authHash: Hex,
  sinceSecs: number,
): Promise<RpcAnswer<SpendEnd | undefined>> {
  const filter = { addresses: [contract], topics: [[claimed, reclaimed], [authHash]] };
  const found = await findLog(ask, (from, to) => singleLogCall(filter, { from, to }), sinceSecs);
  if (found.kind === 'unavailable' || !found.value) return found as RpcAnswer<undefined>;
  const { topics, transactionHash: transaction, blockNumber: number, blockHash: hash } = found.value;
  const how = topics[0] === claimed ? 'claimed' : 'reclaimed';
  return { kind: 'answer', value: { how, transaction, block: { number, hash } } };
}

/** The block of a successful transaction; undefined in the answer when no block includes it. */
export async function findLanded(ask: Ask, transaction: Hex): Promise<RpcAnswer<Landed | undefined>> {
  const receipt = await ask(receiptCall(transaction));
  if (receipt.kind === 'unavailable') return receipt;
  const place = receipt.value?.status === '0x1' ? blockOf(receipt.value) : undefined;
  const block = place && { number: place.blockNumber, hash: place.blockHash };
  return { kind: 'answer', value: block && { transaction, block } };
}

/** Calls within half a second share one request, since many payouts wait for the same block. A final block stays final. */
export function shareFinalized(ask: Ask): () => Promise<BlockAnswer> {
  let answer: Promise<BlockAnswer> | undefined;
  let askedAtMs = 0;
  return async () => {
    if (!answer || performance.now() > askedAtMs + sharedMs) {
      answer = askTaggedBlock(ask, 'finalized');
      askedAtMs = performance.now();
    }
    const asked = answer;
    const found = await asked;
    if (found.kind === 'unavailable' && answer === asked) answer = undefined;
    return found;
  };
}

/** A height at which the node has no block yet is open. */
export async function finalityOf(
  ask: Ask,
  askFinalized: () => Promise<BlockAnswer>,
  { block }: Landed,
): Promise<{ readonly kind: 'answer'; readonly value: Finality } | RpcUnavailable> {
  const finality = await askFinality(ask, askFinalized, block);
  switch (finality.kind) {
    case 'unavailable':
      return finality;
    case 'final':
      return { kind: 'answer', value: 'final' };
    case 'above':
      return { kind: 'answer', value: 'open' };
    case 'other':
      return { kind: 'answer', value: finality.hash === undefined ? 'open' : 'reorged' };
  }
}
