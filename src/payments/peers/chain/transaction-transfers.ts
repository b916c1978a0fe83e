import type { Address, Hex } from '../../../base/values/primitives.ts';
import { addressWord } from '../../../base/peers/rpc/eth-call.ts';
import type { RpcAnswer, RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { findTransaction, type BlockPlace, readInput, receiptCall } from './transactions.ts';
import { type Log, readTransactionLogs } from './logs.ts';
import { authorizationEvents, authorizationsIn, type PaymentAuthorization } from './schemes/schemes.ts';
import { type Transfer, transferOf, transferred } from './transfers.ts';

/** Which of a transaction's transfers are read. */
export interface TransferSelection {
  /** The tokens; undefined: any contract's. */
  readonly assets: readonly Address[] | undefined;
  /** Whose tokens were moved; undefined: anyone's. */
  readonly from?: readonly Address[];
}

/** The selected transfers of a transaction, and the payment authorizations that made some of them. */
export type TransactionTransfers =
  | ({
      readonly kind: 'mined';
      readonly transfers: readonly Transfer[];
      readonly authorizations: readonly PaymentAuthorization[];
    } & BlockPlace)
  /** The node knows it, and it is in no block. */
  | { readonly kind: 'pending' }
  /** The node does not know it. */
  | { readonly kind: 'absent' }
  | ({ readonly kind: 'reverted' } & BlockPlace);

/**
 * Reads transfers of a transaction among the logs of its block, never in its receipt: others can make that as long as they like.
 * @param place its block, if that is known
 */
export async function readTransactionTransfers(
  ask: Ask,
  transaction: Hex,
  { assets, from }: TransferSelection,
  place?: BlockPlace,
): Promise<TransactionTransfers | RpcUnavailable> {
  const found = place ? { kind: 'mined' as const, place } : await findTransaction(ask, transaction);
  if (found.kind !== 'mined') return found;
  const { blockNumber, blockHash } = found.place;
  const topics = [[transferred, ...authorizationEvents], ...(from ? [from.map(addressWord)] : [])];
  const none: RpcAnswer<readonly Log[]> = { kind: 'answer', value: [] };
  const logs =
    assets?.length === 0
      ? none
      : await readTransactionLogs(ask, transaction, { addresses: assets, topics }, blockHash);
  if (logs.kind === 'unavailable') return logs;
  // a transaction that failed has no logs
  if (logs.value.length === 0) {
    const receipt = await ask(receiptCall(transaction));
    if (receipt.kind === 'unavailable') return receipt;
    if (receipt.value?.status === '0x0') return { kind: 'reverted', blockNumber, blockHash };
  }
  const transfers = logs.value.flatMap((log) => transferOf(log) ?? []);
  // without a transfer no payment was made, whatever the calldata says
  const input: RpcAnswer<Hex | undefined> =
    transfers.length === 0 ? { kind: 'answer', value: '0x' } : await readInput(ask, transaction);
  if (input.kind === 'unavailable') return input;
  const authorizations = authorizationsIn(logs.value, input.value ?? '0x');
  return { kind: 'mined', blockNumber, blockHash, transfers, authorizations };
}
