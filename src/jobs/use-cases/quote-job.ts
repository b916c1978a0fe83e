import type { JobsConfig } from '../../base/config/config.ts';
import type { JobId } from '../../base/values/job.ts';
import { writeQuoteEcho } from '../../payments/rules/quote-echo.ts';
import {
  type Quote,
  quoteDigest,
  quoteToData,
  type SettlementOption,
  zeroAddress,
  zeroHash,
} from '../../payments/rules/quote.ts';
import { offersV2Text, offerTextsV2 } from '../../payments/rules/x402.ts';
import type { PaymentRequired, Refused } from './answer.ts';
import { inputJson, type Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import type { NamedQuote } from '../../payments/rules/quote-token.ts';
import { fitOptions } from './fit-offer.ts';
import { offerSecret } from '../../payments/use-cases/receipt-keys.ts';
import { randomHex32 } from '../../base/runtime/random-hex.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { OfferRefusal } from './refusal.ts';

/** What the terms of a quote come from. */
export type TermsContext = Pick<
  JobsContext,
  'lane' | 'offers' | 'quoteKeys' | 'quoteRealm' | 'receiptKeys'
> & {
  readonly settings: Pick<JobsConfig, 'maxTimeoutSecs' | 'quoteTtlSecs'>;
};

type QuoteContext = TermsContext & Pick<JobsContext, 'log' | 'quoteEvents' | 'requestTally' | 'unpaidQuotes'>;

/** How many quotes may be recorded behind their answers at once: what a crash can lose. A quote beyond it is recorded before. */
const mostBehind = 256;

/** A quote for these terms, which anyone may pay for anything where they say no more. Its random salt makes its digest unique. */
export function newQuote(
  terms: JobId &
    Pick<Job, 'priceWei' | 'options'> &
    Partial<Pick<Quote, 'isSummarised' | 'requester' | 'inputsHash' | 'source'>>,
  issuedAt: number,
  ttlSecs: number,
): Quote {
  return {
    serviceId: terms.serviceId,
    jobIndex: terms.jobIndex,
    priceWei: terms.priceWei,
    options: terms.options,
    requester: terms.requester ?? zeroAddress,
    inputsHash: terms.inputsHash ?? zeroHash,
    issuedAt,
    expiresAt: issuedAt + ttlSecs,
    salt: randomHex32(),
    isSummarised: terms.isSummarised ?? false,
    ...(terms.source ? { source: terms.source } : {}),
  };
}

/** The options that a quote for this job has now; the refusal if the facilitator settles none of them or none has a rate. */
export function optionsToQuote(
  context: TermsContext,
  job: Job,
): { readonly kind: 'options'; readonly options: readonly SettlementOption[] } | Refused {
  const available = context.offers.of(job.options);
  if (available.length === 0) {
    const why = context.offers.whyNone(job.options);
    const refused = why === 'no_current_rate' ? why : 'facilitator_unavailable';
    return { kind: 'refused', code: refused, reason: why };
  }
  const { quoteTtlSecs, maxTimeoutSecs } = context.settings;
  const options = fitOptions(available, (fitting) => {
    // the longer of the two
    const terms = { ...job, options: fitting, isSummarised: true };
    const offer = offerOf(context, newQuote(terms, nowSecs(context), quoteTtlSecs));
    return offersV2Text(offerTextsV2(fitting, maxTimeoutSecs), offer);
  });
  return { kind: 'options', options };
}

/**
 * Issues a quote and answers with it. Without a key that authenticates it, the quote is in the ledger before the client gets it.
 * With one it is recorded behind the answer or, beyond the ledger's allowance, summarised: its offer says which. If the facilitator
 * settles none of the accepted tokens, there is nothing to offer and no quote is issued.
 */
export async function quoteJob(
  context: QuoteContext,
  refused: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
): Promise<PaymentRequired | Refused> {
  const { job } = refused;
  const offered = optionsToQuote(context, job);
  if (offered.kind === 'refused') return offered;
  const isSummarised = context.quoteKeys !== undefined && !context.quoteEvents.take();
  const terms = { ...job, options: offered.options, isSummarised };
  const quote = newQuote(terms, nowSecs(context), context.settings.quoteTtlSecs);
  const offer = offerOf(context, quote);
  if (quote.isSummarised) context.requestTally.addQuote(quote, offer.digest);
  else if (offer.echoes && context.unpaidQuotes.size < mostBehind)
    void context.unpaidQuotes.add(recordBehind(context, quote, offer.digest));
  else await recordQuote(context, quote, offer.digest);
  return offerOfQuote(refused, quote, offer);
}

/** Answers with a quote that is on record: no other is issued, and it needs nothing that authenticates it. */
export function offerNamed(
  { receiptKeys }: Pick<JobsContext, 'receiptKeys'>,
  refused: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
  { quote, digest }: NamedQuote,
): PaymentRequired {
  const secret = offerSecret(receiptKeys, digest);
  return offerOfQuote(refused, quote, { digest, secret, echoes: undefined, isNamed: true });
}

function offerOfQuote(
  { job, code, reason }: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
  { serviceId, jobIndex, expiresAt, options }: Quote,
  offer: Pick<PaymentRequired['quote'], 'digest' | 'secret' | 'echoes' | 'isNamed'>,
): PaymentRequired {
  const { description, discovery } = job;
  const of = { serviceId, jobIndex, expiresAt, options, input: inputJson(job), description, discovery };
  return { kind: 'payment_required', code, reason, quote: { ...of, ...offer } };
}

/** What the offers of a quote's options carry: the echoes in the order of the options. */
function offerOf({ quoteKeys: keys, quoteRealm: realm, receiptKeys }: TermsContext, quote: Quote) {
  const digest = quoteDigest(quote);
  const echoes = keys && quote.options.map((option) => writeQuoteEcho(keys, realm, quote, digest, option));
  return { digest, secret: offerSecret(receiptKeys, digest), echoes };
}

/** Where the start of its payment was faster, the quote is recorded already. */
export async function recordQuote(
  { lane }: Pick<JobsContext, 'lane'>,
  quote: Quote,
  digest: Hex,
  options: { readonly urgent?: boolean } = {},
): Promise<void> {
  const events = [{ type: 'quote_issued', data: quoteToData(quote) }] as const;
  await lane.append({ stream: digest, expect: 0, events }, options);
}

/**
 * The client has its answer, so that a full lane cannot refuse the quote any more: a quote that is neither recorded nor summarised
 * would not be counted. Any other failure is logged, and the quote is recorded when it is paid.
 */
async function recordBehind(context: QuoteContext, quote: Quote, digest: Hex): Promise<void> {
  try {
    await recordQuote(context, quote, digest, { urgent: true });
  } catch (error) {
    const { log } = context;
    log.warn({ err: error }, 'an unpaid quote was not recorded: it is recorded when it is paid');
  }
}
