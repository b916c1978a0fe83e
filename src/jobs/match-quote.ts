import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { checkPayment, matchOption, type SignedPayment } from '../domain/payments/payment.ts';
import type { PaymentWindow } from '../domain/payments/payment-window.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { optionFromJson, quoteDigest, quoteToData, type SettlementOption } from '../domain/payments/quote.ts';
import { emptyQuoteState, foldQuote, isOpen, type QuoteState } from '../domain/payments/quote-state.ts';
import { facilitatorMarginSecs } from '../domain/payments/facilitator-margin.ts';
import type { StreamReading } from '../store/streams.ts';
import { type Job, sellsCredit } from './catalog.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { findEarlierPrice } from './earlier-prices.ts';
import type { BoundRequest } from './job-request.ts';
import { newQuote } from './quote-job.ts';
import { type JobRefusal, refusal, rejectedPayment } from './refusal.ts';

/** A payment that fits its quote and its option, and is spelt exactly. */
export interface MatchedPayment {
  readonly kind: 'matched';
  readonly digest: Hex;
  readonly state: QuoteState;
  readonly payment: SignedPayment;
  /** The payer's own id for it. */
  readonly paymentId: string | undefined;
  /** Events that open the stream: a version 1 payment gets its own quote in the append that starts it. */
  readonly opening: readonly LedgerEvent[];
}

type Matched = Omit<MatchedPayment, 'paymentId'>;

/** Steps 2 and 3: the quote, the option and the payment's spelling. Reads no ledger and asks no peer. */
export function matchQuote(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  quote: StreamReading,
): MatchedPayment | JobRefusal {
  const { identifier, terms } = decoded;
  if (identifier === 'malformed') return refusal(request, 'invalid_payment_identifier');
  // version 1 has no extensions: a required id would shut out its clients
  if (!identifier && terms && context.settings.paymentIdentifier === 'required') {
    return refusal(request, 'missing_payment_identifier');
  }
  const matched = terms
    ? matchNamedQuote(context, request, job, decoded, { digest: terms.quoteDigest, ...quote })
    : matchOwnQuote(context, job, decoded);
  return matched.kind === 'refusal' ? matched : { ...matched, paymentId: identifier?.id };
}

/** Version 2: the payment names its quote, and keeps its price until that expires. */
function matchNamedQuote(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  { digest, events, nowSecs: readAt }: StreamReading & { readonly digest: Hex | undefined },
): Matched | JobRefusal {
  if (digest === undefined) return rejectedPayment(job, { stage: 'match', reason: 'names_no_quote' });
  const named = { stage: 'match', quote_digest: digest } as const;
  const state = foldQuote(events);
  const { quote } = state;
  if (!quote || quote.service_id !== job.serviceId || quote.job_index !== job.jobIndex) {
    return rejectedPayment(job, { ...named, reason: 'unknown_quote' });
  }
  const option = matchOption(decoded, quote.options.map(optionFromJson));
  // a quote from before the job sold credit, or from when it did
  if (!option || sellsCredit(job) !== (option.creditMicros !== undefined))
    return rejectedPayment(job, { ...named, reason: 'matches_no_option' });
  if (!isOpen(state, readAt)) {
    if (quote.expires_at > readAt) return refusal(request, 'quote_in_use', { digest });
    return rejectedPayment(job, { ...named, reason: 'quote_expired' }, 'quote_expired');
  }
  const payment = checkPayment(decoded, option, paymentWindow(context, readAt));
  return 'invalid' in payment
    ? rejectedPayment(job, { stage: 'shape', reason: payment.invalid, quote_digest: digest })
    : { kind: 'matched', digest, state, payment, opening: [] };
}

/**
 * Version 1: the payment names no quote. The present price, or that of any quote that has not expired, only fixes the amount;
 * the payment gets a quote of its own, which no other payment can name or take.
 */
function matchOwnQuote(context: JobsContext, job: Job, decoded: DecodedPayment): Matched | JobRefusal {
  const offered = matchOption(decoded, job.options);
  if (!offered) return rejectedPayment(job, { stage: 'match', reason: 'matches_no_option' });
  const now = nowSecs(context);
  const window = paymentWindow(context, now);
  let [option, priceWei]: [SettlementOption, bigint] = [offered, job.priceWei];
  let payment = checkPayment(decoded, option, window);
  if ('invalid' in payment && payment.invalid === 'authorization_value_mismatch') {
    const earlier = earlierTerms(context, job, offered, decoded.payload.value);
    if (earlier) {
      ({ option, priceWei } = earlier);
      payment = checkPayment(decoded, option, window);
    }
  }
  if ('invalid' in payment) return rejectedPayment(job, { stage: 'shape', reason: payment.invalid });
  const quote = newQuote({ ...job, priceWei, options: [option] }, now, context.settings.quoteTtlSecs);
  const opening: LedgerEvent[] = [{ type: 'quote_issued', data: quoteToData(quote) }];
  return { kind: 'matched', digest: quoteDigest(quote), state: emptyQuoteState, payment, opening };
}

/** The terms of unexpired quotes from before the price changed. */
function earlierTerms(
  context: JobsContext,
  job: Job,
  offered: SettlementOption,
  value: string,
): { option: SettlementOption; priceWei: bigint } | undefined {
  const { creditMicros: _, ...option } = { ...offered, amount: BigInt(value) };
  const earlier = findEarlierPrice(context.earlierPrices, job, option, nowSecs(context));
  if (!earlier || sellsCredit(job) !== (earlier.creditMicros !== undefined)) return undefined;
  const { priceWei, creditMicros } = earlier;
  return { option: creditMicros === undefined ? option : { ...option, creditMicros }, priceWei };
}

/** The times a payment must fit into now, settling included. */
export function paymentWindow(context: JobsContext, atSecs: number): PaymentWindow {
  const { maxTimeoutSecs, facilitatorSettleTimeoutMs } = context.settings;
  const settleMarginSecs = facilitatorMarginSecs + Math.ceil(facilitatorSettleTimeoutMs / 1_000);
  return { nowSecs: atSecs, maxTimeoutSecs, settleMarginSecs };
}
