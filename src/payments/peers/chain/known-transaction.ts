import { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { longAnswer } from '../../../base/peers/rpc/answer-reader.ts';
import type { RpcCall, RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { address, bytes32, quantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import { type BlockPlace, blockOf } from './receipt.ts';
import type { Fees } from './transaction-fees.ts';

/** Whether the node knows a transaction, mined or pending. */
export function knownTransactionCall(transaction: Hex): RpcCall<boolean> {
  return {
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: z
      .object({})
      .nullable()
      .transform((found) => found !== null),
    reading: longAnswer,
  };
}

export type TransactionFound =
  | { readonly kind: 'mined'; readonly place: BlockPlace }
  /** The node knows it, and it is in no block. */
  | { readonly kind: 'pending' }
  | { readonly kind: 'absent' };

const placeSchema = z.object({
  hash: bytes32,
  blockNumber: quantity.nullish().transform((number) => number ?? null),
  blockHash: bytes32.nullish().transform((hash) => hash ?? null),
});

/** The block of a transaction. Of its input, whatever its length, nothing is kept. */
export async function findTransaction(
  ask: Ask,
  transaction: Hex,
): Promise<TransactionFound | RpcUnavailable> {
  const answer = await ask({
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: placeSchema.refine(({ hash }) => hash === transaction).nullable(),
    reading: longAnswer,
  });
  if (answer.kind === 'unavailable') return answer;
  if (answer.value === null) return { kind: 'absent' };
  const place = blockOf(answer.value);
  return place ? { kind: 'mined', place } : { kind: 'pending' };
}

/** A transaction as a node has it. */
export interface KnownTransaction {
  readonly nonce: number;
  readonly gas: bigint;
  readonly fees: Fees;
}

const transactionSchema = z.object({
  hash: bytes32,
  from: address,
  nonce: quantity.transform(Number).refine((nonce) => Number.isSafeInteger(nonce)),
  gas: quantity,
  gasPrice: quantity.nullish(),
  maxFeePerGas: quantity.nullish(),
  maxPriorityFeePerGas: quantity.nullish(),
});

/** A transaction that this address has signed; null where the node does not know it. */
export function ownTransactionCall(transaction: Hex, by: Address): RpcCall<KnownTransaction | null> {
  return {
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: transactionSchema
      .refine(({ hash, from }) => hash === transaction && from === by)
      .transform(({ nonce, gas, gasPrice, maxFeePerGas, maxPriorityFeePerGas }) => ({
        nonce,
        gas,
        fees:
          maxFeePerGas == null
            ? { type: 'legacy' as const, gasPrice: gasPrice ?? 0n }
            : {
                type: 'eip1559' as const,
                maxFeePerGas,
                maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n,
              },
      }))
      .nullable(),
    reading: longAnswer,
  };
}
