import type { JobId } from '../domain/payments/job.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { SettlementOption } from '../domain/payments/quote.ts';
import type { RefusalCode } from '../domain/errors/refusal.ts';
import type { inputJson } from './catalog.ts';
import type { paymentSummary } from '../domain/payments/payment.ts';

/** A quote as it is offered: its name, how long it holds, and the ways to pay it. */
export interface OfferedQuote extends JobId {
  readonly digest: Hex;
  readonly expiresAt: number;
  readonly options: readonly SettlementOption[];
  /** What the job's requests must be, where that is limited. */
  readonly input: ReturnType<typeof inputJson>;
}

/** Every way a paid request can end, before HTTP gives it a status. */
export type JobAnswer =
  | {
      readonly kind: 'accepted';
      readonly digest: Hex;
      readonly job: JobId;
      readonly callId: number;
      readonly payment: ReturnType<typeof paymentSummary>;
      /** The version the payment came in: its answer goes back in the same. */
      readonly x402Version: 1 | 2;
      /** Left out where the asker did not show that the quote is its own. */
      readonly receiptToken: string | undefined;
      readonly replayed: boolean;
    }
  | PaymentRequired
  /** Money may have moved: never told as a failure. */
  | { readonly kind: 'pending'; readonly digest: Hex; readonly replayed: boolean }
  | Refused;

export interface PaymentRequired {
  readonly kind: 'payment_required';
  readonly code: 'payment_required' | 'payment_invalid' | 'quote_expired';
  /** Why the payment that came was not taken: a machine word. */
  readonly reason: string | undefined;
  readonly quote: OfferedQuote;
}

export interface Refused {
  readonly kind: 'refused';
  readonly code: RefusalCode;
  readonly retryAfterSecs?: number;
  /** What exactly is wrong, line by line: our own words. */
  readonly details?: readonly string[];
}
