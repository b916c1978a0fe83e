import type { ExpectedTransfer } from '../../../domain/payments/payment.ts';
import type { Address, Hex } from '../../../domain/values/primitives.ts';
import type { BlockTag } from '../../rpc/eth-call.ts';
import type { RpcCall, RpcUnavailable } from '../../rpc/json-rpc.ts';
import type { Ask } from '../blocks.ts';
import type { BlockPlace, Receipt } from '../receipt.ts';
import type { LogPlace } from '../transfers.ts';

/** What a transaction's receipt shows of a payment. */
export type SettlementAnswer =
  | ({ readonly kind: 'paid' } & LogPlace & BlockPlace)
  /** No receipt, or none in a block yet. */
  | { readonly kind: 'absent' }
  | ({
      readonly kind: 'contradicted';
      readonly why: 'reverted' | 'no_authorization_used' | 'no_transfer';
    } & BlockPlace)
  | RpcUnavailable;

interface TransactionPlace extends BlockPlace {
  readonly transaction: Hex;
}

/** What became of a payer's authorization. */
export type AuthorizationFound =
  | ({ readonly kind: 'paid' } & LogPlace & TransactionPlace)
  /** Its payer withdrew it. */
  | ({ readonly kind: 'canceled' } & TransactionPlace)
  /** Used, but not for the expected transfer. */
  | ({ readonly kind: 'used_otherwise' } & TransactionPlace)
  /** The node has no such log where it looked; a node that lags behind answers the same. */
  | { readonly kind: 'absent' }
  | RpcUnavailable;

/** The Transfer of a receipt that a payer's authorization moved. */
export interface UsedAuthorization {
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
  readonly logIndex: number;
}

/** What a payment scheme reads on a chain. Its counterpart without I/O is the PaymentScheme of the domain. */
export interface ChainScheme {
  /** Whether the payer's authorization is used up at a block: settled, or canceled. */
  isUsedCall(expected: ExpectedTransfer, at: BlockTag): RpcCall<boolean>;

  /** Whether a receipt shows that this very payment was settled. */
  readSettlement(
    receipt: Receipt | null,
    expected: ExpectedTransfer,
  ): Exclude<SettlementAnswer, RpcUnavailable>;

  /**
   * Looks through the logs for the use of an authorization, from a block older than `sinceSecs` (Unix seconds by the
   * chain's clock) up to the latest, newest blocks first.
   */
  findAuthorization(ask: Ask, expected: ExpectedTransfer, sinceSecs: number): Promise<AuthorizationFound>;

  /** Every use of this scheme that a receipt shows, each with its transfer. */
  usedAuthorizations(receipt: Receipt): UsedAuthorization[];
}
