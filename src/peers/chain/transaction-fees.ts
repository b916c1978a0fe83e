import { z } from 'zod';
import { smallAnswerBytes } from '../rpc/eth-call.ts';
import type { RpcAnswer, RpcCall } from '../rpc/json-rpc.ts';
import { quantity } from '../rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';

/** What a transaction offers for a unit of gas, in wei. */
export type Fees =
  | { readonly type: 'eip1559'; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  | { readonly type: 'legacy'; readonly gasPrice: bigint };

const gweiWei = 1_000_000_000n;

/** Twice the block's base fee: full blocks before ours may raise it. A chain without a base fee has a gas price. */
export async function readFees(ask: Ask): Promise<RpcAnswer<Fees>> {
  const block = await ask({
    method: 'eth_getBlockByNumber',
    params: ['latest', false],
    result: z.looseObject({ baseFeePerGas: quantity.nullish() }),
    maxResponseBytes: maxBlockBytes,
  });
  if (block.kind === 'unavailable') return block;
  const base = block.value.baseFeePerGas ?? undefined;
  if (base === undefined) {
    const price = await ask(priceCall('eth_gasPrice'));
    return price.kind === 'unavailable'
      ? price
      : { kind: 'answer', value: { type: 'legacy', gasPrice: (price.value * 5n) / 4n } };
  }
  // not every node has this method
  const tip = await ask(priceCall('eth_maxPriorityFeePerGas'));
  const maxPriorityFeePerGas = tip.kind === 'answer' ? tip.value : gweiWei;
  return {
    kind: 'answer',
    value: { type: 'eip1559', maxFeePerGas: base * 2n + maxPriorityFeePerGas, maxPriorityFeePerGas },
  };
}

/** Nodes replace a transaction only for a fee that is a tenth higher; an eighth leaves a margin. */
const leastRaise = (fee: bigint): bigint => fee + fee / 8n + 1n;

/** Today's fees, at least as high as nodes require of a replacement; undefined where the offered fees still suffice. */
export function raisedFees(offered: Fees, today: Fees): Fees | undefined {
  const atLeast = (fee: bigint, old: bigint): bigint => (fee > leastRaise(old) ? fee : leastRaise(old));
  if (offered.type === 'legacy' && today.type === 'legacy')
    return today.gasPrice > leastRaise(offered.gasPrice) ? today : undefined;
  if (offered.type === 'legacy' || today.type === 'legacy') return undefined;
  if (today.maxFeePerGas <= leastRaise(offered.maxFeePerGas)) return undefined;
  const { maxFeePerGas, maxPriorityFeePerGas } = today;
  return {
    type: 'eip1559',
    maxFeePerGas,
    maxPriorityFeePerGas: atLeast(maxPriorityFeePerGas, offered.maxPriorityFeePerGas),
  };
}

/** A block with the hashes of all its transactions. */
const maxBlockBytes = 4 * 1024 * 1024;

function priceCall(method: 'eth_gasPrice' | 'eth_maxPriorityFeePerGas'): RpcCall<bigint> {
  return { method, params: [], result: quantity, maxResponseBytes: smallAnswerBytes };
}
