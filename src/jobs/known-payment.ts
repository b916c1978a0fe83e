import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import { nameOf, paymentSummary } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState, paymentOf, type QuoteState } from '../domain/payments/quote-state.ts';
import type { KnownPayment } from '../store/payment-lookup.ts';
import { readStream } from '../store/streams.ts';
import type { JobAnswer } from './answer.ts';
import type { JobsContext } from './context.ts';
import { receiptToken } from './receipt.ts';
import { pause } from '../runtime/pause.ts';
import { within } from '../runtime/within.ts';

/** What the ledger says about a payment that was claimed before. */
export type KnownPaymentAnswer =
  | JobAnswer
  /** It failed before broadcast: no money moved, and its payer may sign another. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** It paid for another request. */
  | { readonly kind: 'replay' };

const pollMs = 250;
/** How long a client that asks again waits for the outcome before it is told that it is pending. */
const patienceMs = 20_000;

/** What the ledger knows about a payment and the quote it names, in one look. */
export function lookUpPayment(context: JobsContext, decoded: DecodedPayment): Promise<KnownPayment> {
  return context.lookup.find(nameOf(decoded), decoded.terms?.quoteDigest);
}

/**
 * Answers a payment that is already known from that payment alone, whatever price, policy, quote or limit now says.
 * While it is being settled, here or in another process, waits for the outcome. Undefined for a payment never seen.
 */
export async function answerKnownPayment(
  context: JobsContext,
  decoded: DecodedPayment,
  binding: Hex,
  { streams }: KnownPayment,
): Promise<KnownPaymentAnswer | undefined> {
  // one nonce may have been signed for two tokens: the one that paid for this request answers it
  const recalled = await Promise.all(
    streams.map((stream) => recallFrom(context, stream as Hex, decoded, binding)),
  );
  return recalled.find(({ kind }) => kind !== 'replay') ?? recalled[0];
}

async function recallFrom(
  context: JobsContext,
  digest: Hex,
  decoded: DecodedPayment,
  binding: Hex,
): Promise<KnownPaymentAnswer> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const story = foldQuote((await readStream(context.pool, digest)).events);
    const known = knownPayment(story, decoded);
    if (known.binding !== binding) return { kind: 'replay' };
    if (known.status !== 'settling' || Date.now() > deadline || context.stopping()) {
      return toAnswer(context, digest, story, known, decoded);
    }
    const remainingMs = Math.max(0, deadline - Date.now());
    await within(remainingMs, context.settling.get(digest) ?? pause(pollMs));
  }
}

function knownPayment(story: QuoteState, decoded: DecodedPayment): PaymentState {
  const known = paymentOf(story, nameOf(decoded));
  if (!known) throw new Error('a claimed payment is missing from its stream');
  return known;
}

function toAnswer(
  context: JobsContext,
  digest: Hex,
  story: QuoteState,
  known: PaymentState,
  decoded: DecodedPayment,
): KnownPaymentAnswer {
  switch (known.status) {
    case 'settling':
    case 'settlement_unknown':
      return { kind: 'pending', digest, replayed: true };
    case 'settlement_failed':
      return { kind: 'failed', reason: known.reason ?? 'settlement_failed' };
    case 'settled':
      return acceptedAnswer(context, digest, story, known, {
        replayed: true,
        showsQuote:
          decoded.terms?.quoteDigest === digest &&
          decoded.payload.signature.toLowerCase() === known.payment.signature,
      });
  }
}

/** The 202 of a settled payment. Only who shows the quote it paid gets the token to the result. */
export function acceptedAnswer(
  context: JobsContext,
  digest: Hex,
  story: QuoteState,
  known: PaymentState,
  how: { readonly replayed: boolean; readonly showsQuote: boolean },
): Extract<JobAnswer, { kind: 'accepted' }> {
  if (!story.quote || !known.call || !known.settled) throw new Error('a settled payment without its call');
  return {
    kind: 'accepted',
    digest,
    job: { serviceId: story.quote.service_id, jobIndex: story.quote.job_index },
    callId: known.call.callId,
    payment: paymentSummary(known.payment, known.settled.transaction),
    x402Version: known.payment.x402_version,
    receiptToken: how.showsQuote ? receiptToken(context.receiptKey, digest) : undefined,
    replayed: how.replayed,
  };
}
