import { z } from 'zod';
import type { RpcAnswer, RpcCall } from '../../../base/peers/rpc/json-rpc.ts';
import { quantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import { shortCall } from '../../../base/peers/rpc/eth-call.ts';
import { outlinedCall } from '../../../base/peers/rpc/eth-call.ts';

/** What a transaction offers for a unit of gas, in wei. */
export type Fees =
  | { readonly type: 'eip1559'; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  | { readonly type: 'legacy'; readonly gasPrice: bigint };

const gweiWei = 1_000_000_000n;

/** What a transaction offers today, and what it pays if it lands in the next block. */
export interface TodaysFees {
  readonly fees: Fees;
  /** Wei for a unit of gas. */
  readonly priceWei: bigint;
}

/**
 * Twice the block's base fee, at most `mostWei`: full blocks before ours may raise it. A chain without a base fee has a gas
 * price.
 */
export async function readFees(ask: Ask, mostWei?: bigint): Promise<RpcAnswer<TodaysFees>> {
  const atMost = (wei: bigint): bigint => (mostWei !== undefined && mostWei < wei ? mostWei : wei);
  const withFee = z.looseObject({ baseFeePerGas: quantity.nullish() });
  const block = await ask(outlinedCall('eth_getBlockByNumber', ['latest', false], withFee));
  if (block.kind === 'unavailable') return block;
  const base = block.value.baseFeePerGas ?? undefined;
  if (base === undefined) {
    const price = await ask(priceCall('eth_gasPrice'));
    if (price.kind === 'unavailable') return price;
    const fees = { type: 'legacy', gasPrice: atMost((price.value * 5n) / 4n) } as const;
    return { kind: 'answer', value: { fees, priceWei: price.value } };
  }
  // not every node has this method
  const tip = await ask(priceCall('eth_maxPriorityFeePerGas'));
  const tipWei = tip.kind === 'answer' ? tip.value : gweiWei;
  const fees = {
    type: 'eip1559',
    maxFeePerGas: atMost(base * 2n + tipWei),
    maxPriorityFeePerGas: atMost(tipWei),
  } as const;
  return { kind: 'answer', value: { fees, priceWei: base + tipWei } };
}

/** Nodes replace a transaction only for a fee that is a tenth higher; an eighth leaves a margin. */
const leastRaise = (fee: bigint): bigint => fee + fee / 8n + 1n;

/** Today's fees, at least as high as nodes require of a replacement; undefined if the offered fees still suffice. */
export function raisedFees(offered: Fees, today: Fees): Fees | undefined {
  const atLeast = (fee: bigint, old: bigint): bigint => (fee > leastRaise(old) ? fee : leastRaise(old));
  if (offered.type === 'legacy' && today.type === 'legacy')
    return today.gasPrice > leastRaise(offered.gasPrice) ? today : undefined;
  if (offered.type === 'legacy' || today.type === 'legacy') return undefined;
  if (today.maxFeePerGas <= leastRaise(offered.maxFeePerGas)) return undefined;
  const { maxFeePerGas } = today;
  const maxPriorityFeePerGas = atLeast(today.maxPriorityFeePerGas, offered.maxPriorityFeePerGas);
  return maxPriorityFeePerGas > maxFeePerGas
    ? undefined
    : { type: 'eip1559', maxFeePerGas, maxPriorityFeePerGas };
}

function priceCall(method: 'eth_gasPrice' | 'eth_maxPriorityFeePerGas'): RpcCall<bigint> {
  return shortCall(method, [], quantity);
}
