import { z } from 'zod';
import type { Hex } from '../../domain/values/primitives.ts';
import { hexBytes } from '../rpc/eth-call.ts';
import type { RpcCall } from '../rpc/json-rpc.ts';
import { address, bytes32, noBlockHash, quantity } from '../rpc/rpc-values.ts';

/** A block that was canonical when the node answered; a reorg may replace it. */
export interface BlockPlace {
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
}

/** A transaction that settles hundreds of payments still fits. */
export const receiptBytes = 2 * 1024 * 1024;

export const logSchema = z.object({
  address,
  topics: z.array(bytes32).max(4),
  data: hexBytes,
  logIndex: quantity,
  transactionHash: bytes32,
  blockHash: bytes32.nullable(),
  // only newer nodes send it
  blockTimestamp: quantity.nullish(),
  removed: z.literal(false).optional(),
});
export type Log = z.infer<typeof logSchema>;

const receiptSchema = z.object({
  transactionHash: bytes32,
  status: z.enum(['0x0', '0x1']),
  blockNumber: quantity.nullable(),
  blockHash: bytes32.nullable(),
  logs: z.array(logSchema),
});
export type Receipt = z.infer<typeof receiptSchema>;

export function receiptCall(transaction: Hex): RpcCall<Receipt | null> {
  return {
    method: 'eth_getTransactionReceipt',
    params: [transaction],
    result: receiptSchema.refine((receipt) => isCoherent(receipt, transaction)).nullable(),
    maxResponseBytes: receiptBytes,
  };
}

/** The receipt is the requested one, all its logs belong to it, and they are in order. */
function isCoherent(receipt: Receipt, transaction: Hex): boolean {
  const { transactionHash, blockHash, logs } = receipt;
  const own = logs.every((log) => log.transactionHash === transactionHash && log.blockHash === blockHash);
  const ordered = logs.every(({ logIndex }, at) => logIndex > (logs[at - 1]?.logIndex ?? -1n));
  return transactionHash === transaction && own && ordered;
}

/** The block that includes the transaction; undefined where it has no receipt, or none in a block yet. */
export function blockOf(receipt: Pick<Receipt, 'blockNumber' | 'blockHash'> | null): BlockPlace | undefined {
  if (!receipt?.blockHash || receipt.blockNumber === null || receipt.blockHash === noBlockHash)
    return undefined;
  return { blockNumber: receipt.blockNumber, blockHash: receipt.blockHash };
}
