import type { Discovery } from '../../base/values/discovery.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import { didOf, type OfferKey } from '../../payments/rules/offer-key.ts';
import type { Signed } from '../../payments/rules/offer-receipt.ts';
import type { JobId } from '../../base/values/job.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { QuoteEcho } from '../../payments/rules/quote-echo.ts';
import type { SettlementOption } from '../../payments/rules/quote.ts';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import { type inputJson, jobUrl } from './catalog.ts';
import { receiptToken, type ReceiptKeys } from '../../payments/use-cases/receipt-keys.ts';
import type { OfferCode } from './refusal.ts';
import type { RouteLease } from '../../calls/store/route-calls.ts';
import type { WholeAnswer } from './routes/route-request.ts';
import type { paymentSummary } from '../../payments/rules/payment.ts';

/** An offered quote: its digest, its secret, its expiry (Unix seconds) and the ways to pay it. */
export interface OfferedQuote extends JobId {
  readonly digest: Hex;
  /** For the recipient of the offer alone. */
  readonly secret: string;
  readonly expiresAt: number;
  readonly options: readonly SettlementOption[];
  /** What authenticates the quote, for each option in its order; undefined without a key. */
  readonly echoes: readonly QuoteEcho[] | undefined;
  /** The content type and schema of the job's requests; undefined if it takes any. */
  readonly input: ReturnType<typeof inputJson>;
  /** What the job does, for people. */
  readonly description: string | undefined;
  /** How facilitators list the job; undefined if they may not. */
  readonly discovery: Discovery | undefined;
  /** Of a route: where it was asked for, without the query. */
  readonly url?: string | undefined;
  /** Of a route: whether its payment is settled after the answer, which x402 does not name in an offer. */
  readonly isAnsweredFirst?: boolean;
  /** Its price is that of one request; version 1 cannot pay it. */
  readonly isForOneRequest?: boolean;
  /** Named by the request's address; version 1 cannot pay it. */
  readonly isNamed?: boolean;
}

/** Every way a paid request can end, before HTTP gives it a status. */
export type JobAnswer = PaymentAnswer | PaymentRequired | Refused;

/** The answer of a payment that was started. */
export type PaymentAnswer =
  | {
      readonly kind: 'accepted';
      readonly digest: Hex;
      readonly job: JobId;
      readonly callId: number;
      readonly payment: ReturnType<typeof paymentSummary>;
      /** The version the payment came in: its answer goes back in the same. */
      readonly x402Version: 1 | 2;
      readonly receiptToken: string;
      /** For others than the payer; undefined if receipts are not signed, and once the payment was refunded. */
      readonly signedReceipt: Signed | undefined;
      readonly replayed: boolean;
      /** Of a route whose upstream answered first: what this request has stored, and the settlement completed. Undefined where it has to be read. */
      readonly answer?: WholeAnswer | undefined;
      /** Of a route that is settled first: this request has the call, and serves it. */
      readonly lease?: RouteLease | undefined;
    }
  /** The upstream's own answer, for which nothing is charged: the payment was not settled, and is watched in case it lands all the same. */
  | { readonly kind: 'passed_on'; readonly digest: Hex; readonly answer: WholeAnswer }
  /** Money may have moved, so this is never reported as a failure. */
  | { readonly kind: 'pending'; readonly digest: Hex; readonly replayed: boolean }
  /**
   * To a client that repeats a known payment and has not shown that it is its own: a landed payment is public, and its request
   * may be guessed.
   */
  | { readonly kind: 'unproven'; readonly status: 'accepted' | 'pending' };

export interface PaymentRequired {
  readonly kind: 'payment_required';
  readonly code: OfferCode;
  /** Why the payment was rejected, or the quote that the request names is not offered: a machine-readable code. */
  readonly reason: string | undefined;
  readonly quote: OfferedQuote;
}

export interface Refused {
  readonly kind: 'refused';
  readonly code: RefusalCode;
  readonly retryAfterSecs?: number;
  /** For the log: a machine-readable reason of a 503. */
  readonly reason?: string;
  /** What exactly is wrong, line by line. */
  readonly details?: readonly string[];
}

export interface ReceiptPorts {
  readonly settings: JobsConfig;
  readonly receiptKeys: ReceiptKeys;
  /** Sign receipts for others than the payer; undefined if they are not signed. */
  readonly offerKeys: RotatingSecret<OfferKey> | undefined;
  readonly publicUrl: () => string;
}

type Accepted = Extract<PaymentAnswer, { kind: 'accepted' }>;

/**
 * The 202 of a settled payment, for a client that has shown that the payment is its own.
 * @param settledAt RFC 3339
 */
export function acceptedAnswer(
  context: ReceiptPorts,
  paid: Omit<Accepted, 'kind' | 'receiptToken' | 'signedReceipt'>,
  { settledAt, isRefunded }: { readonly settledAt: string; readonly isRefunded: boolean },
): Accepted {
  return {
    kind: 'accepted',
    ...paid,
    receiptToken: receiptToken(context.receiptKeys, paid.digest),
    signedReceipt: isRefunded ? undefined : signReceipt(context, paid, settledAt),
  };
}

/**
 * The signed receipt of a settled payment, for others than its payer. It says when the payment was settled, not when it is asked for: so
 * a repeated request gets the same receipt, as long as key and public address are the same.
 */
function signReceipt(
  { offerKeys, publicUrl }: ReceiptPorts,
  { job, payment: { network, payer } }: Pick<Accepted, 'job' | 'payment'>,
  settledAt: string,
): Signed | undefined {
  if (!offerKeys) return undefined;
  const [key] = offerKeys;
  const origin = publicUrl();
  // without the transaction, which shows the amount: its payer knows it, and can give it to whom they show the receipt
  const payload = {
    version: 1,
    network,
    resourceUrl: jobUrl(origin, job),
    payer,
    issuedAt: Math.floor(Date.parse(settledAt) / 1_000),
  } as const;
  return key.sign({ kind: 'receipt', payload }, didOf(origin));
}
