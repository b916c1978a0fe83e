import type { TransferProof } from './payment-progress.ts';
import type { TransferMethod } from '../../base/values/transfer-method.ts';

/** A transfer of a token as the chain's log has it; amounts in atoms, hex lower-case. */
export interface ChainTransfer extends TransferProof {
  readonly network: string;
  readonly asset: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
  readonly transaction: string;
}

/** What the chain shows of one transaction. */
export type Evidence =
  | {
      readonly kind: 'mined';
      /** Those of the accounts that were asked for. */
      readonly transfers: readonly ChainTransfer[];
      /** Which transfer each payment authorization moved. */
      readonly authorizations: readonly {
        readonly transferMethod: TransferMethod;
        readonly asset: string;
        readonly payer: string;
        readonly nonce: string;
        readonly logIndex: number;
      }[];
    }
  | { readonly kind: 'reverted' }
  /** The node knows the transaction, and it is in no block. */
  | { readonly kind: 'pending' }
  | { readonly kind: 'absent' };

export interface PlacedTransfer {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
  /** Unix seconds of the block, where known. */
  readonly blockTimeSecs?: number;
}

/** A transfer's place as event fields. */
export function placeData({ blockNumber, blockHash, logIndex, blockTimeSecs }: PlacedTransfer) {
  return {
    block_number: String(blockNumber),
    block_hash: blockHash,
    ...(blockTimeSecs === undefined ? {} : { block_time: blockTimeSecs }),
    log_index: logIndex,
  };
}
