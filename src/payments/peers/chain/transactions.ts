import { z } from 'zod';
import type { Hex, Address } from '../../../base/values/primitives.ts';
import type { RpcAnswer, RpcCall, RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity, address, safeQuantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import type { Fees } from './transaction-fees.ts';
import { hexBytes, outlinedCall } from '../../../base/peers/rpc/eth-call.ts';

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
  const own = receiptSchema.refine(({ transactionHash }) => transactionHash === transaction);
  return outlinedCall('eth_getTransactionReceipt', [transaction], own.nullable());
}

/** The block that includes the transaction; undefined if the node knows none, or one that is not sealed yet. */
export function blockOf(
  of: { readonly blockNumber: bigint | null; readonly blockHash: Hex | null } | null,
): BlockPlace | undefined {
  if (!of?.blockHash || of.blockNumber === null || of.blockHash === noBlockHash) return undefined;
  return { blockNumber: of.blockNumber, blockHash: of.blockHash };
}

/** A transaction, mined or pending. Of its input, whatever its length, nothing is kept. */
function transactionCall<T>(transaction: Hex, result: z.ZodType<T>): RpcCall<T> {
  return outlinedCall('eth_getTransactionByHash', [transaction], result);
}

/** Whether the node knows a transaction, mined or pending. */
export function knownTransactionCall(transaction: Hex): RpcCall<boolean> {
  const found = z.object({}).nullable();
  return transactionCall(
    transaction,
    found.transform((one) => one !== null),
  );
}

/** Who signed a transaction, and under which nonce. */
export interface SignedBy {
  readonly sender: Address;
  readonly nonce: number;
}

/** Undefined if the node does not know the transaction, mined or pending. */
export function signedByCall(transaction: Hex): RpcCall<SignedBy | undefined> {
  const own = z
    .object({ hash: bytes32, from: address, nonce: safeQuantity })
    .refine(({ hash }) => hash === transaction)
    .nullable();
  return transactionCall(
    transaction,
    own.transform((found) => (found ? { sender: found.from, nonce: found.nonce } : undefined)),
  );
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

/** The block of a transaction. */
export async function findTransaction(
  ask: Ask,
  transaction: Hex,
): Promise<TransactionFound | RpcUnavailable> {
  const own = placeSchema.refine(({ hash }) => hash === transaction).nullable();
  const answer = await ask(transactionCall(transaction, own));
  if (answer.kind === 'unavailable') return answer;
  if (answer.value === null) return { kind: 'absent' };
  const place = blockOf(answer.value);
  return place ? { kind: 'mined', place } : { kind: 'pending' };
}

/** Two million bytes: their gas is that of a whole block. */
const maxInputBytes = 5 * 1024 * 1024;

/** The calldata of a transaction; undefined if the node does not know it, and `0x` if it is too long for any payment. */
export async function readInput(ask: Ask, transaction: Hex): Promise<RpcAnswer<Hex | undefined>> {
  const own = z
    .object({ hash: bytes32, input: hexBytes })
    .refine(({ hash }) => hash === transaction)
    .transform(({ input }) => input as Hex)
    .nullable()
    .transform((input) => input ?? undefined);
  const answer = await ask({
    method: 'eth_getTransactionByHash',
    params: [transaction],
    result: own,
    maxResponseBytes: maxInputBytes,
  });
  return answer.kind === 'unavailable' && answer.cause === 'too_large'
    ? { kind: 'answer', value: '0x' }
    : answer;
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
  nonce: safeQuantity,
  gas: quantity,
  gasPrice: quantity.nullish(),
  maxFeePerGas: quantity.nullish(),
  maxPriorityFeePerGas: quantity.nullish(),
});

/** A transaction that this address has signed; null if the node does not know it. */
export function ownTransactionCall(transaction: Hex, by: Address): RpcCall<KnownTransaction | null> {
  const own = transactionSchema
    .refine(({ hash, from }) => hash === transaction && from === by)
    .transform(({ nonce, gas, gasPrice, maxFeePerGas, maxPriorityFeePerGas }) => {
      const fees: Fees =
        maxFeePerGas == null
          ? { type: 'legacy', gasPrice: gasPrice ?? 0n }
          : { type: 'eip1559', maxFeePerGas, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
      return { nonce, gas, fees };
    });
  return transactionCall(transaction, own.nullable());
}
