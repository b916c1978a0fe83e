import { z } from 'zod';
import type { Hex } from '../../../base/values/primitives.ts';
import type { RpcCall } from '../../../base/peers/rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity } from '../../../base/peers/rpc/rpc-values.ts';
import { longAnswer } from '../../../base/peers/rpc/answer-reader.ts';

/** A block that was canonical when the node answered; a reorg may replace it. */
export interface BlockPlace {
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
}

const receiptSchema = z.object({
  transactionHash: bytes32,
  status: z.enum(['0x0', '0x1']),
  blockNumber: quantity.nullable(),
  blockHash: bytes32.nullable(),
});
export type Receipt = z.infer<typeof receiptSchema>;

/**
 * A receipt without its logs, which are skipped unread: the parties of a transaction decide how many there are.
 * What a transaction moved is never read from here.
 */
export function receiptCall(transaction: Hex): RpcCall<Receipt | null> {
  return {
    method: 'eth_getTransactionReceipt',
    params: [transaction],
    result: receiptSchema.refine(({ transactionHash }) => transactionHash === transaction).nullable(),
    reading: longAnswer,
  };
}

/** The block that includes the transaction; undefined where the node knows none, or one that is not sealed yet. */
export function blockOf(
  of: { readonly blockNumber: bigint | null; readonly blockHash: Hex | null } | null,
): BlockPlace | undefined {
  if (!of?.blockHash || of.blockNumber === null || of.blockHash === noBlockHash) return undefined;
  return { blockNumber: of.blockNumber, blockHash: of.blockHash };
}
