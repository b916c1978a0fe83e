import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import { nameOf, paymentSummary } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { refundReason } from '../domain/payments/refund.ts';
import {
  foldQuote,
  jobOf,
  type PaymentState,
  paymentOf,
  type QuoteState,
} from '../domain/payments/quote-state.ts';
import type { KnownPayment } from '../store/payment-lookup.ts';
import { readStream } from '../store/streams.ts';
import type { PaymentAnswer } from './answer.ts';
import type { JobsContext } from './context.ts';
import { receiptToken } from './receipt.ts';
import { pause } from '../runtime/pause.ts';
import { within } from '../runtime/within.ts';

/** What the ledger says about a payment. */
export type KnownPaymentResult =
  /** Never claimed. */
  | { readonly kind: 'not_known' }
  | { readonly kind: 'answered'; readonly answer: PaymentAnswer }
  /** It failed before broadcast: no money moved, and its payer may sign another. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** It was sent before with another request. */
  | { readonly kind: 'replay' }
  /** The ledger had lost it. Its refund is due, and its payer may still ask for delivery. */
  | { readonly kind: 'recovered'; readonly digest: Hex };

const pollMs = 250;
/** How long a repeated request waits for the outcome before its answer is `settlement_pending`. */
const waitTimeoutMs = 20_000;

/** Reads a payment's claims and the quote it names, in one query. */
export function lookUpPayment(context: JobsContext, decoded: DecodedPayment): Promise<KnownPayment> {
  return context.lookup.find(nameOf(decoded), decoded.terms?.quoteDigest);
}

/**
 * Answers a known payment from its own state alone, whatever price, policy, quote or limit applies now. While it is being
 * settled, in this process or another, waits for the outcome.
 */
export async function answerKnownPayment(
  context: JobsContext,
  decoded: DecodedPayment,
  binding: Hex,
  { streams }: KnownPayment,
): Promise<KnownPaymentResult> {
  // one nonce may have been signed for two tokens: the one that paid for this request answers it
  const results = await Promise.all(
    streams.map((stream) => answerFromStream(context, stream as Hex, decoded, binding)),
  );
  return results.find(({ kind }) => kind !== 'replay') ?? results[0] ?? { kind: 'not_known' };
}

async function answerFromStream(
  context: JobsContext,
  digest: Hex,
  decoded: DecodedPayment,
  binding: Hex,
): Promise<KnownPaymentResult> {
  const deadline = Date.now() + waitTimeoutMs;
  for (;;) {
    const state = foldQuote((await readStream(context.pool, digest)).events);
    const known = knownPayment(state, decoded);
    if (refundReason(state, known) === 'recovered') return { kind: 'recovered', digest };
    if ((known.recovered?.redelivery ?? known).binding !== binding) return { kind: 'replay' };
    if (known.status !== 'settling' || Date.now() > deadline || context.stopping()) {
      return resultOf(context, digest, state, known, decoded);
    }
    const remainingMs = Math.max(0, deadline - Date.now());
    await within(remainingMs, context.settling.get(digest) ?? pause(pollMs));
  }
}

function knownPayment(state: QuoteState, decoded: DecodedPayment): PaymentState {
  const known = paymentOf(state, nameOf(decoded));
  if (!known) throw new Error('a claimed payment is missing from its stream');
  return known;
}

function resultOf(
  context: JobsContext,
  digest: Hex,
  state: QuoteState,
  known: PaymentState,
  decoded: DecodedPayment,
): KnownPaymentResult {
  switch (known.status) {
    case 'settling':
    case 'settlement_unknown':
      return { kind: 'answered', answer: { kind: 'pending', digest, replayed: true } };
    case 'settlement_failed':
      return { kind: 'failed', reason: known.reason ?? 'settlement_failed' };
    case 'settled': {
      // its delivery was requested at this moment
      if (!known.call) return { kind: 'answered', answer: { kind: 'pending', digest, replayed: true } };
      const showsQuote =
        decoded.terms?.quoteDigest === digest &&
        decoded.payload.signature.toLowerCase() === known.payment.signature;
      const answer = acceptedAnswer(context, digest, state, known, { replayed: true, showsQuote });
      return { kind: 'answered', answer };
    }
  }
}

/** The 202 of a settled payment. The token to the result goes only to a client that shows the quote it paid. */
export function acceptedAnswer(
  context: JobsContext,
  digest: Hex,
  state: QuoteState,
  known: PaymentState,
  how: { readonly replayed: boolean; readonly showsQuote: boolean },
): Extract<PaymentAnswer, { kind: 'accepted' }> {
  const job = jobOf(state);
  if (!job || !known.call || !known.settled) throw new Error('a settled payment has no call');
  return {
    kind: 'accepted',
    digest,
    job,
    callId: known.call.callId,
    payment: paymentSummary(known.payment, known.settled.transaction),
    x402Version: known.recovered?.redelivery?.x402_version ?? known.payment.x402_version,
    receiptToken: how.showsQuote ? receiptToken(context.receiptKeys, digest) : undefined,
    replayed: how.replayed,
  };
}
