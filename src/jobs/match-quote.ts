import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import { checkPayment, matchOption, type SignedPayment } from '../domain/payments/payment.ts';
import type { PaymentWindow } from '../domain/payments/payment-window.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { optionFromJson, quoteDigest, quoteToData, type SettlementOption } from '../domain/payments/quote.ts';
import { emptyQuoteState, foldQuote, isOpen, type QuoteState } from '../domain/payments/quote-state.ts';
import { facilitatorMarginSecs } from '../domain/payments/facilitator-margin.ts';
import { findLivePriceWei, type StreamReading } from '../store/streams.ts';
import type { Job } from './catalog.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { newQuote } from './quote-job.ts';

/** A payment that its quote, its option and its own spelling allow. */
export interface MatchedPayment {
  readonly digest: Hex;
  readonly story: QuoteState;
  readonly payment: SignedPayment;
  /** The payer's own name for it, where it has one. */
  readonly paymentId: string | undefined;
  /** Events that open the stream: a version 1 payment gets a quote of its own in the append that starts it. */
  readonly opening: readonly LedgerEvent[];
}

export type Mismatch =
  | {
      readonly kind: 'rejected';
      readonly code: 'payment_invalid' | 'quote_expired';
      readonly why: Pick<EventData<'payment_rejected'>, 'stage' | 'reason' | 'quote_digest' | 'payer'>;
    }
  | { readonly kind: 'quote_in_use'; readonly digest: Hex }
  | {
      readonly kind: 'unidentified';
      readonly code: 'invalid_payment_identifier' | 'missing_payment_identifier';
    };

export function rejected(
  why: Extract<Mismatch, { kind: 'rejected' }>['why'],
  code: 'payment_invalid' | 'quote_expired' = 'payment_invalid',
): Mismatch {
  return { kind: 'rejected', code, why };
}

type Matched = Omit<MatchedPayment, 'paymentId'>;

/** Steps 2 and 3: the quote, the option, the payment's own spelling. Asks nobody but the ledger. */
export async function matchQuote(
  context: JobsContext,
  job: Job,
  decoded: DecodedPayment,
  quote: StreamReading,
): Promise<MatchedPayment | Mismatch> {
  const { identifier, terms } = decoded;
  if (identifier === 'malformed') return { kind: 'unidentified', code: 'invalid_payment_identifier' };
  // version 1 has no extensions: required of it, an id would only shut its clients out
  if (!identifier && terms && context.settings.paymentIdentifier === 'required') {
    return { kind: 'unidentified', code: 'missing_payment_identifier' };
  }
  const matched = terms
    ? matchNamedQuote(context, job, decoded, terms.quoteDigest, quote)
    : await matchOwnQuote(context, job, decoded);
  return 'kind' in matched ? matched : { ...matched, paymentId: identifier?.id };
}

/** Version 2: the payment names its quote, and keeps its price until that expires. */
function matchNamedQuote(
  context: JobsContext,
  job: Job,
  decoded: DecodedPayment,
  digest: Hex | undefined,
  { events, nowSecs: readAt }: StreamReading,
): Matched | Mismatch {
  if (digest === undefined) return rejected({ stage: 'match', reason: 'names_no_quote' });
  const named = { stage: 'match', quote_digest: digest } as const;
  const story = foldQuote(events);
  const { quote } = story;
  if (!quote || quote.service_id !== job.serviceId || quote.job_index !== job.jobIndex) {
    return rejected({ ...named, reason: 'unknown_quote' });
  }
  const option = matchOption(decoded, quote.options.map(optionFromJson));
  if (!option) return rejected({ ...named, reason: 'matches_no_option' });
  if (!isOpen(story, readAt)) {
    if (quote.expires_at > readAt) return { kind: 'quote_in_use', digest };
    return rejected({ ...named, reason: 'quote_expired' }, 'quote_expired');
  }
  const payment = checkPayment(decoded, option, paymentWindow(context, readAt));
  return 'invalid' in payment
    ? rejected({ stage: 'shape', reason: payment.invalid, quote_digest: digest })
    : { digest, story, payment, opening: [] };
}

/**
 * Version 1: the payment names no quote. The present price, or that of any quote that still holds, only fixes what it
 * has to pay; it gets a quote of its own, which nobody else can name or take.
 */
async function matchOwnQuote(
  context: JobsContext,
  job: Job,
  decoded: DecodedPayment,
): Promise<Matched | Mismatch> {
  const offered = matchOption(decoded, job.options);
  if (!offered) return rejected({ stage: 'match', reason: 'matches_no_option' });
  const now = nowSecs(context);
  const window = paymentWindow(context, now);
  let [option, priceWei] = [offered, job.priceWei];
  let payment = checkPayment(decoded, option, window);
  if ('invalid' in payment && payment.invalid === 'authorization_value_mismatch') {
    const earlier = await earlierTerms(context, job, offered, decoded.payload.value);
    if (earlier) {
      ({ option, priceWei } = earlier);
      payment = checkPayment(decoded, option, window);
    }
  }
  if ('invalid' in payment) return rejected({ stage: 'shape', reason: payment.invalid });
  const quote = newQuote({ ...job, priceWei, options: [option] }, now, context.settings.quoteTtlSecs);
  const opening: LedgerEvent[] = [{ type: 'quote_issued', data: quoteToData(quote) }];
  return { digest: quoteDigest(quote), story: emptyQuoteState, payment, opening };
}

/** The terms of a quote that holds from before the price changed. Only looked for while there can be one. */
async function earlierTerms(
  context: JobsContext,
  job: Job,
  offered: SettlementOption,
  value: string,
): Promise<{ option: SettlementOption; priceWei: bigint } | undefined> {
  const { quoteTtlSecs } = context.settings;
  if (Date.now() - context.configuredAtMs > quoteTtlSecs * 1_000) return undefined;
  const option = { ...offered, amount: BigInt(value) };
  const priceWei = await findLivePriceWei(context.db, { ...job, ...option }, quoteTtlSecs);
  return priceWei === undefined ? undefined : { option, priceWei };
}

export function paymentWindow(context: JobsContext, atSecs: number): PaymentWindow {
  const { maxTimeoutSecs, facilitatorSettleTimeoutMs } = context.settings;
  const settleMarginSecs = facilitatorMarginSecs + Math.ceil(facilitatorSettleTimeoutMs / 1_000);
  return { nowSecs: atSecs, maxTimeoutSecs, settleMarginSecs };
}
