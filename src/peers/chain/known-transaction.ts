import { z } from 'zod';
import type { Hex } from '../../domain/values/primitives.ts';
import type { RpcCall } from '../rpc/json-rpc.ts';

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
