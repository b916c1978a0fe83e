import type { JobId } from '../domain/payments/job.ts';
import { writeQuoteEcho } from '../domain/payments/quote-echo.ts';
import {
  type Quote,
  quoteDigest,
  quoteToData,
  type SettlementOption,
  zeroAddress,
  zeroHash,
} from '../domain/payments/quote.ts';
import { offersV2Text, offerTextsV2 } from '../domain/payments/x402.ts';
import type { PaymentRequired, Refused } from './answer.ts';
import { inputJson, type Job } from './catalog.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { fitOptions } from './fit-offer.ts';
import { offerSecret } from './receipt-keys.ts';
import { randomHex32 } from '../runtime/random-hex.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { OfferRefusal } from './refusal.ts';

/** How many quotes may be recorded behind their answers at once: what a crash can lose. A quote beyond it is recorded before. */
const mostBehind = 256;

/** A quote for these terms that anyone may pay. Its random salt makes its digest unique. */
export function newQuote(
  terms: JobId & Pick<Job, 'priceWei' | 'options'>,
  issuedAt: number,
  ttlSecs: number,
): Quote {
  return {
    serviceId: terms.serviceId,
    jobIndex: terms.jobIndex,
    priceWei: terms.priceWei,
    options: terms.options,
    requester: zeroAddress,
    inputsHash: zeroHash,
    issuedAt,
    expiresAt: issuedAt + ttlSecs,
    salt: randomHex32(),
  };
}

/**
 * Issues a quote and answers with it. Without a key that authenticates it, the quote is in the ledger before the client gets it. If
 * the facilitator settles none of the accepted tokens, there is nothing to offer and no quote is issued.
 */
export async function quoteJob(
  context: JobsContext,
  { job, code, reason }: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
): Promise<PaymentRequired | Refused> {
  const available = context.offers.of(job.options);
  if (available.length === 0) return { kind: 'refused', code: 'facilitator_unavailable' };
  const { quoteTtlSecs, maxTimeoutSecs } = context.settings;
  const quoteOf = (options: readonly SettlementOption[]): Quote =>
    newQuote({ ...job, options }, nowSecs(context), quoteTtlSecs);
  const fitting = fitOptions(available, (options) => {
    const offer = offerOf(context, quoteOf(options));
    return offersV2Text(offerTextsV2(options, maxTimeoutSecs), offer);
  });
  const quote = quoteOf(fitting);
  const offer = offerOf(context, quote);
  const recorded = recordQuote(context, quote, offer.digest);
  if (offer.echoes && context.unpaidQuotes.size < mostBehind)
    void context.unpaidQuotes.add(behind(context, recorded));
  else await recorded;
  const { serviceId, jobIndex, expiresAt, options } = quote;
  return {
    kind: 'payment_required',
    code,
    reason,
    quote: { serviceId, jobIndex, ...offer, expiresAt, options, input: inputJson(job) },
  };
}

/** What the offers of a quote's options carry: the echoes in the order of the options. */
function offerOf({ quoteKeys: keys, quoteRealm: realm, receiptKeys }: JobsContext, quote: Quote) {
  const digest = quoteDigest(quote);
  const echoes = keys && quote.options.map((option) => writeQuoteEcho(keys, realm, quote, digest, option));
  return { digest, secret: offerSecret(receiptKeys, digest), echoes };
}

/** Where the start of its payment was faster, the quote is recorded already. */
async function recordQuote({ lane }: JobsContext, quote: Quote, digest: Hex): Promise<void> {
  await lane.append({
    stream: digest,
    expect: 0,
    events: [{ type: 'quote_issued', data: quoteToData(quote) }],
  });
}

/** The client has its answer: a failure is logged. The quote is recorded when it is paid. */
async function behind({ log }: JobsContext, recorded: Promise<void>): Promise<void> {
  try {
    await recorded;
  } catch (error) {
    log.warn({ err: error }, 'an unpaid quote was not recorded');
  }
}
