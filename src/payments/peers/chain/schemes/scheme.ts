import type { ExpectedTransfer } from '../../../rules/payment.ts';
import type { Address, Hex } from '../../../../base/values/primitives.ts';
import type { BlockTag } from '../../../../base/peers/rpc/eth-call.ts';
import type { RpcCall, RpcUnavailable } from '../../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from '../blocks.ts';
import type { SearchMemory } from '../find-log.ts';
import type { Log } from '../logs.ts';
import type { BlockPlace } from '../transactions.ts';
import type { LogPlace } from '../transfers.ts';

/** Where the transfer of a payment is. */
export interface MovedTransfer extends LogPlace {
  /** The atoms that it moved, of a scheme that may move less than was signed; undefined: all that was signed. */
  readonly value?: bigint;
}

/** What the logs of a transaction show of a payment. */
export type SettlementAnswer =
  | ({ readonly kind: 'paid' } & MovedTransfer & BlockPlace)
  /** The node does not know the transaction, or it is in no block yet. */
  | { readonly kind: 'absent' }
  /** A transaction that failed has used no authorization. */
  | ({ readonly kind: 'contradicted'; readonly why: 'no_authorization_used' | 'no_transfer' } & BlockPlace)
  /** It has transfers of which one may be this payment's: only an operator can say which. */
  | ({ readonly kind: 'ambiguous'; readonly transfers: readonly MovedTransfer[] } & BlockPlace)
  | RpcUnavailable;

interface TransactionPlace extends BlockPlace {
  readonly transaction: Hex;
}

/** What became of a payer's authorization. */
export type AuthorizationFound =
  | ({ readonly kind: 'paid' } & MovedTransfer & TransactionPlace)
  /** Its payer withdrew it. */
  | ({ readonly kind: 'canceled' } & TransactionPlace)
  /** Used, but not for the expected transfer. */
  | ({ readonly kind: 'used_otherwise' } & BlockPlace & Partial<TransactionPlace>)
  /** Used, and the chain has transfers of which one may be the expected one: only an operator can say so. */
  | { readonly kind: 'ambiguous' }
  /** The node has no such log where it looked; a lagging node answers the same. */
  | { readonly kind: 'absent' }
  | RpcUnavailable;

/** The Transfer of a transaction that a payer's authorization moved. */
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

  /** The events that a use logs. Their second topic is the payer, as that of a Transfer is. */
  readonly usedEvents: readonly Hex[];

  /** Whether a transaction settled this very payment. */
  findSettlement(ask: Ask, transaction: Hex, expected: ExpectedTransfer): Promise<SettlementAnswer>;

  /**
   * Looks through the logs for the use of an authorization, from a block older than `sinceSecs` (Unix seconds by the
   * chain's clock) up to the latest, newest blocks first.
   */
  findAuthorization(
    ask: Ask,
    expected: ExpectedTransfer,
    sinceSecs: number,
    memory: SearchMemory,
  ): Promise<AuthorizationFound>;

  /**
   * Every use of this scheme that a transaction shows, each with its transfer.
   * @param logs its uses and transfers; of a payer there are all, or none
   * @param input its calldata
   */
  usedAuthorizations(logs: readonly Log[], input: Hex): UsedAuthorization[];
}
