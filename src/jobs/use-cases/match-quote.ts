import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import {
  checkPayment,
  hasOwnScheme,
  matchOption,
  readSignedPayment,
  type SignedPayment,
} from '../../payments/rules/payment.ts';
import type { JobId } from '../../base/values/job.ts';
import type { PaymentWindow } from '../../payments/rules/payment-window.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { type AcceptedToken, tokenName } from '../../base/values/token.ts';
import { payableInV1 } from '../../payments/rules/x402-v1.ts';
import {
  fullOptions,
  optionFromJson,
  quoteDigest,
  quoteToData,
  type SettlementOption,
  termsFromData,
} from '../../payments/rules/quote.ts';
import { emptyQuoteState, foldQuote, type QuoteState } from '../../payments/rules/quote-state.ts';
import { authenticQuote, type QuoteKeys, type QuoteRealm } from '../../payments/rules/quote-echo.ts';
import { logSecondSecret } from '../../base/runtime/second-secret.ts';
import type { KnownPayment } from '../../payments/store/payment-lookup.ts';
import { findPriceWindow } from '../../payments/store/price-windows.ts';
import { type Job, optionIn } from './catalog.ts';
import type pg from 'pg';
import type { JobsConfig } from '../../base/config/config.ts';
import type { Offers } from './offers.ts';
import type { JobHead, PaidRequest } from './job-request.ts';
import { checkQuoteBinding } from './routes/request-price.ts';
import { unitsOf } from './top-ups/units.ts';
import { startMarginSecs } from './routes/route-request.ts';
import { newQuote } from './quote-job.ts';
import { type JobRefusal, refusal, rejectedPayment } from './refusal.ts';
import { findSignedToken, type SignaturePorts } from '../../payments/use-cases/payer-signature.ts';

export interface MatchPorts extends SignaturePorts {
  readonly pool: pg.Pool;
  readonly settings: JobsConfig;
  readonly offers: Offers;
  readonly quoteKeys: QuoteKeys | undefined;
  readonly quoteRealm: QuoteRealm;
}

/** A payment that fits its quote and its option, and is spelt exactly. */
export interface MatchedPayment {
  readonly kind: 'matched';
  readonly digest: Hex;
  readonly state: QuoteState;
  readonly payment: SignedPayment;
  /** The payer's own id for it. */
  readonly paymentId: string | undefined;
  /** Events that open the stream, in the append that starts the payment: its quote, if the ledger does not have it yet. */
  readonly opening: readonly LedgerEvent[];
  /** From when on its terms cannot be paid any more, in Unix seconds. */
  readonly termsEndAt: number;
  /** When its price was quoted, in Unix seconds; undefined for a price that is in force. */
  readonly pricedAt: number | undefined;
  /** Of the body, if the quote is bound to one. */
  readonly bodyKeccak256?: Hex | undefined;
  /** Nothing was read about the payment: it may be known. */
  readonly isUnread?: boolean;
  /** How to refuse it if it has not landed: it fits, but it comes too late to be settled. */
  readonly late?: JobRefusal | undefined;
}

type Matched = Omit<MatchedPayment, 'paymentId'>;

/** Steps 2 and 3: the quote, the option and the payment's spelling. Asks no peer, but a chain which token a contract account means. */
export async function matchQuote(
  context: MatchPorts,
  request: PaidRequest,
  job: Job,
  lookUp: KnownPayment,
): Promise<MatchedPayment | JobRefusal> {
  const { decoded } = request;
  const { identifier, terms } = decoded;
  if (identifier === 'malformed') return refusal(request, 'invalid_payment_identifier');
  const matched = terms
    ? matchNamedQuote(context, request, job, lookUp)
    : await matchOwnQuote(context, request, job, lookUp);
  return matched.kind === 'refusal' ? matched : { ...matched, paymentId: identifier?.id };
}

/** Version 2: the payment names its quote, and keeps its price until that expires. */
function matchNamedQuote(
  context: MatchPorts,
  request: PaidRequest,
  job: Job,
  lookUp: KnownPayment,
): Matched | JobRefusal {
  const { decoded } = request;
  const { revokedBefore } = lookUp;
  const readAt = lookUp.quote.nowSecs;
  const digest = decoded.terms?.quoteDigest;
  if (digest === undefined) return rejectedPayment(job, { stage: 'match', reason: 'names_no_quote' });
  const named = { stage: 'match', quote_digest: digest } as const;
  const { state, opening } = readNamedQuote(context, job, decoded, lookUp.quote);
  const { quote } = state;
  if (!quote || quote.service_id !== job.serviceId || quote.job_index !== job.jobIndex) {
    return rejectedPayment(job, { ...named, reason: 'unknown_quote' });
  }
  if (quote.issued_at < revokedBefore)
    return rejectedPayment(job, { ...named, reason: 'quote_revoked' }, 'quote_expired');
  const option = matchOption(decoded, fullOptions(quote).map(optionFromJson));
  // a quote from before the job sold credit, or from when it did
  if (!option || job.isTopUp !== (option.creditMicros !== undefined))
    return rejectedPayment(job, { ...named, reason: 'matches_no_option' });
  const terms = { ...termsFromData(quote), source: quote.source };
  const binding = checkQuoteBinding(job, request, terms, decoded.payer);
  if (binding.kind === 'broken') return rejectedPayment(job, { ...named, reason: binding.reason });
  const isExpired = quote.expires_at <= readAt;
  // a payment that failed has ended its quote; any other may still deliver for it, or has
  if (state.payment?.status === 'settlement_failed')
    return rejectedPayment(job, { ...named, reason: 'quote_ended' }, 'quote_ended');
  if (state.payment) return refusal(request, 'quote_in_use', { digest });
  const refuse = (reason: string): JobRefusal =>
    isExpired
      ? rejectedPayment(job, { ...named, reason: 'quote_expired' }, 'quote_expired')
      : rejectedPayment(job, { stage: 'shape', reason, quote_digest: digest });
  const window = paymentWindow(context, request, Math.min(readAt, quote.expires_at));
  const checked = checkTimely(decoded, option, window);
  if ('invalid' in checked) return refuse(checked.invalid);
  const { payment, lateBecause } = checked;
  const late = isExpired || lateBecause !== undefined ? refuse(lateBecause ?? 'quote_expired') : undefined;
  const pricedAt = quote.issued_at;
  const { bodyKeccak256 } = binding;
  const ofQuote = { digest, state, opening, pricedAt, termsEndAt: quote.expires_at, bodyKeccak256 };
  return { kind: 'matched', payment, ...ofQuote, ...(late ? { late } : {}) };
}

/** A quote that no event names yet is the one that the payment echoes, if that authenticates itself: its start records it. */
export function readNamedQuote(
  { quoteKeys, quoteRealm, log }: MatchPorts,
  job: JobId,
  { network, transferMethod, terms }: DecodedPayment,
  { events }: KnownPayment['quote'],
): Pick<MatchedPayment, 'state' | 'opening'> {
  if (events.length > 0 || !quoteKeys || !terms?.quoteDigest || !terms.echo)
    return { state: foldQuote(events), opening: [] };
  const { quoteDigest: named, echo } = terms;
  const echoed = { ...terms, network, transferMethod, quoteDigest: named, echo };
  const authentic = authenticQuote(quoteKeys, quoteRealm, job, echoed);
  if (!authentic) return { state: emptyQuoteState, opening: [] };
  const { data, keyId } = authentic;
  if (keyId !== quoteKeys[0].id) logSecondSecret(log, 'quote_key');
  return { state: { ...emptyQuoteState, quote: data }, opening: [{ type: 'quote_issued', data }] };
}

type TimelyCheck =
  /** `lateBecause`: it fitted at an earlier time, and this reason says why it does not fit any more. */
  { readonly payment: SignedPayment; readonly lateBecause?: string } | { readonly invalid: string };

/**
 * Checks a payment at a time, and where its own time is over, at the last moment at which it could be settled: until then
 * another account may have landed it, and its payer is charged.
 */
function checkTimely(decoded: DecodedPayment, option: SettlementOption, window: PaymentWindow): TimelyCheck {
  const { nowSecs: atSecs } = window;
  const payment = checkPayment(decoded, option, window);
  if (!('invalid' in payment)) return { payment };
  const lastSecs = Number(readSignedPayment(decoded, option)?.validBefore ?? 0) - window.settleMarginSecs;
  if (lastSecs >= atSecs) return payment;
  const earlier = checkPayment(decoded, option, { ...window, nowSecs: lastSecs });
  return 'invalid' in earlier ? payment : { payment: earlier, lateBecause: payment.invalid };
}

/**
 * Version 1: the payment names no quote. The present price, or one that some gateway offered and that has not ended, only
 * fixes the amount; the payment gets a separate quote, which no other payment can name or take.
 */
async function matchOwnQuote(
  context: MatchPorts,
  request: PaidRequest,
  job: Job,
  { revokedBefore, quote: { nowSecs: now } }: KnownPayment,
): Promise<Matched | JobRefusal> {
  const { decoded } = request;
  const window = paymentWindow(context, request, now);
  const unmatched = (reason: string): JobRefusal => rejectedPayment(job, { stage: 'match', reason });
  if (job.priced || unitsOf(job, request) > 1) return unmatched('price_depends_on_request');
  const { acceptedTokens, quoteTtlSecs } = context.settings;
  const tokens = hasOwnScheme(decoded) ? payableInV1(acceptedTokens) : [];
  const token = await findSignedToken(context, decoded, tokens);
  if (!token) return unmatched('matches_no_option');
  const check = (terms: OwnTerms) => checkTimely(decoded, terms.option, window);
  // a price of a rate that is not current any more counts only where it was offered, and while that lasts
  const hasRate = context.offers.hasRate(token);
  let terms = hasRate ? presentTerms(job, token) : undefined;
  let checked = terms && check(terms);
  if (!checked || ('invalid' in checked && checked.invalid === 'authorization_value_mismatch')) {
    const earlier = await earlierTerms(context, job, token, decoded.payload.value, revokedBefore);
    if (earlier) [terms, checked] = [earlier, check(earlier)];
  }
  if (!terms || !checked) return unmatched(hasRate ? 'matches_no_option' : 'no_current_rate');
  if ('invalid' in checked) return rejectedPayment(job, { stage: 'shape', reason: checked.invalid });
  const { payment, lateBecause } = checked;
  const late = lateBecause && rejectedPayment(job, { stage: 'shape', reason: lateBecause });
  const { option, priceWei, pricedAt } = terms;
  const quote = newQuote({ ...job, priceWei, options: [option] }, now, quoteTtlSecs);
  const opening: LedgerEvent[] = [{ type: 'quote_issued', data: quoteToData(quote) }];
  const termsEndAt = Math.min(quote.expiresAt, terms.endAt);
  const ofQuote = { digest: quoteDigest(quote), state: emptyQuoteState, opening, pricedAt, termsEndAt };
  return { kind: 'matched', payment, ...ofQuote, ...(late ? { late } : {}) };
}

/** What a version 1 payment pays: the price, when it was offered (undefined for the present one), and from when on it ends. */
interface OwnTerms {
  readonly option: SettlementOption;
  readonly priceWei: bigint;
  readonly pricedAt: number | undefined;
  /** Unix seconds. A price that is in force has no end yet. */
  readonly endAt: number;
}

function presentTerms({ options, priceWei }: Job, token: AcceptedToken): OwnTerms | undefined {
  const option = options.find((one) => tokenName(one) === tokenName(token));
  return option && { option, priceWei, pricedAt: undefined, endAt: Infinity };
}

/** The terms that another gateway offers, or that were offered before the price changed. */
async function earlierTerms(
  { pool }: MatchPorts,
  job: Job,
  token: AcceptedToken,
  value: string,
  revokedBefore: number,
): Promise<OwnTerms | undefined> {
  if (!/^\d{1,78}$/.test(value)) return undefined;
  const option = optionIn(token, BigInt(value));
  const window = await findPriceWindow(pool, job, option, revokedBefore);
  if (!window || job.isTopUp !== (window.creditMicros !== undefined)) return undefined;
  const { priceWei, creditMicros, offeredAt: pricedAt, endAt } = window;
  const bought = creditMicros === undefined ? option : { ...option, creditMicros };
  return { option: bought, priceWei, pricedAt, endAt };
}

/** The times a payment must fit into at a time: settling included, and the answer of an upstream that is asked first. */
function paymentWindow({ settings }: MatchPorts, request: JobHead, nowSecs: number): PaymentWindow {
  const { maxTimeoutSecs } = settings;
  return { nowSecs, maxTimeoutSecs, settleMarginSecs: startMarginSecs(settings, request) };
}
