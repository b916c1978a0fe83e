import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import type { RpcCall } from '../rpc/json-rpc.ts';
import { address, bytes32, quantity } from '../rpc/rpc-values.ts';
import type { Fees } from './transaction-fees.ts';

/** The largest transaction that nodes relay. */
const transactionBytes = 512 * 1024;

/** Whether the node knows a transaction, mined or pending. */
export function knownTransactionCall(transaction: Hex): RpcCall<boolean> {
  return {
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: z
      .object({})
      .nullable()
      .transform((found) => found !== null),
    maxResponseBytes: transactionBytes,
  };
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
    maxResponseBytes: transactionBytes,
  };
}
