import { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { address, bytes32, quantity } from '../../../base/peers/rpc/rpc-values.ts';
import { type Ask, askTaggedBlock, type Block, type BlockAnswer, askFinality } from './blocks.ts';
import { blockOf } from './transactions.ts';
import { outlinedCall } from '../../../base/peers/rpc/eth-call.ts';

/** What a transaction cost, successful or not, and who sent it and paid for it. */
export interface TransactionCost {
  readonly payer: Address;
  readonly gasUsed: bigint;
  /** Of a unit of gas. */
  readonly gasPriceWei: bigint;
  /** The fee that a rollup of the OP stack charged in addition to the gas; undefined on other chains. */
  readonly l1FeeWei: bigint | undefined;
  readonly block: Block;
}

export type CostReading =
  | { readonly kind: 'final'; readonly cost: TransactionCost }
  /** Its block may still change. `reason` says which block is final by now. */
  | { readonly kind: 'not_final'; readonly reason: string }
  /** The node has no receipt of it, or none in a block yet. */
  | { readonly kind: 'absent' }
  | RpcUnavailable;

/** What a receipt says of the cost, its logs passed over. It is read for nothing else, so that a node that leaves some of it out disturbs no payment. */
const costSchema = z.object({
  transactionHash: bytes32,
  from: address,
  gasUsed: quantity,
  effectiveGasPrice: quantity,
  l1Fee: quantity.nullish(),
  blockNumber: quantity.nullable(),
  blockHash: bytes32.nullable(),
});

/** The cost of a transaction in a final, canonical block; `askFinalized` may share its request with others. */
export async function readCost(
  ask: Ask,
  transaction: Hex,
  askFinalized: () => Promise<BlockAnswer> = () => askTaggedBlock(ask, 'finalized'),
): Promise<CostReading> {
  const own = costSchema.refine(({ transactionHash }) => transactionHash === transaction);
  const answer = await ask(outlinedCall('eth_getTransactionReceipt', [transaction], own.nullable()));
  if (answer.kind === 'unavailable') return answer;
  const receipt = answer.value;
  const place = blockOf(receipt);
  if (!receipt || !place) return { kind: 'absent' };
  const { blockNumber: number, blockHash: hash } = place;
  const finality = await askFinality(ask, askFinalized, { number, hash });
  switch (finality.kind) {
    case 'unavailable':
      return finality;
    case 'above':
      return {
        kind: 'not_final',
        reason: `it is in block ${number}, and the last final block is ${finality.finalNumber}`,
      };
    case 'other':
      return { kind: 'not_final', reason: `block ${number} was reorged out` };
    case 'final': {
      const { from: payer, gasUsed, effectiveGasPrice: gasPriceWei, l1Fee } = receipt;
      const cost = { payer, gasUsed, gasPriceWei, l1FeeWei: l1Fee ?? undefined, block: finality.block };
      return { kind: 'final', cost };
    }
  }
}
