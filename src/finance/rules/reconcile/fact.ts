import type { EventData } from '../../../ledger/rules/event.ts';
import type { Account } from './reconcile.ts';
import type { NamedProgress, TransferProof } from '../../../payments/rules/payment-progress.ts';

/** One payment by the ledger: its progress, and values that only reconciliation needs. */
export interface PaymentFact extends Account, NamedProgress {
  readonly quoteDigest: string;
  /** The event that settled it last; the one that started it if none did. */
  readonly seq: number;
  readonly symbol: string;
  readonly decimals: number;
  readonly payer: string;
  readonly nonce: string;
  readonly signedAmount: bigint;
  /** Its payer signed for at most that (`upto`). */
  readonly isAtMost: boolean;
  readonly startedAt: string;
  /** The transaction that settled it last, whether or not that settlement stood. */
  readonly transaction: string | undefined;
  /** The first of the quote's terms that it does not match. */
  readonly differs: string | undefined;
}

/** The amount that settled; the signed one while none did. */
export function amountOf({ settled, signedAmount }: Pick<PaymentFact, 'settled' | 'signedAmount'>): bigint {
  return settled ? BigInt(settled.amount) : signedAmount;
}

/** How an operator explained money that came without a payment. */
export type TransferUse = EventData<'operator_transfer_recorded'>['as'];

/**
 * A refund, a sweep, or an operator's record of money that came without a payment. `payTo` is its source, which may be no
 * payee.
 */
export interface OutFact extends Account, TransferProof {
  readonly of: 'refund' | 'sweep' | TransferUse;
  readonly seq: number;
  readonly recordedAt: string;
  readonly to: string;
  readonly amount: bigint;
  readonly transaction: string;
  readonly quoteDigest: string | undefined;
}

/** A spend that a prepaid contract paid out. Its token and recipient are not in the ledger. */
export interface SpendFact {
  readonly seq: number;
  readonly network: string;
  readonly contract: string;
  readonly operator: string;
  readonly amount: bigint;
  /** Undefined if the chain only showed that it had been paid out before. */
  readonly transaction: string | undefined;
  readonly recordedAt: string;
}

/** Of a fact relative to the period. */
export type Position = 'before' | 'in' | 'after';
