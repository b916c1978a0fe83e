import type { JobsConfig } from '../../base/config/config.ts';
import type { JobId } from '../../base/values/job.ts';
import { type QuoteKeys, type QuoteRealm, writeQuoteEcho } from '../../payments/rules/quote-echo.ts';
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
import type { Lane } from '../../ledger/store/lane.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { EventAllowance } from '../../ledger/store/event-allowance.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import type { Offers } from './offers.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { type NamedQuote, readQuoteToken } from '../../payments/rules/quote-token.ts';
import { offerSecret, type ReceiptKeys, isQuoteTokenProof } from '../../payments/use-cases/receipt-keys.ts';
import { randomHex32 } from '../../base/runtime/random-hex.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { OfferRefusal } from './refusal.ts';
import { foldQuote, isOpen } from '../../payments/rules/quote-state.ts';
import { readRevocation } from './revoke-quotes.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type pg from 'pg';
import type { WholeRequest } from './job-request.ts';
import { checkQuoteBinding } from './routes/request-price.ts';

/** What the terms of a quote come from. */
export interface TermsPorts {
  readonly lane: Lane;
  readonly settings: Pick<JobsConfig, 'maxTimeoutSecs' | 'quoteTtlSecs'>;
  readonly offers: Offers;
  /** Authenticate the prices of quotes; undefined if each quote is recorded before its answer. */
  readonly quoteKeys: QuoteKeys | undefined;
  readonly quoteRealm: QuoteRealm;
  readonly receiptKeys: ReceiptKeys;
}

export interface QuotePorts extends TermsPorts {
  /** How many unpaid quotes are recorded with a key. */
  readonly quoteEvents: EventAllowance;
  /** Sums refusals and quotes that are not recorded one by one. */
  readonly requestTally: RequestTally;
  /** Quotes that are being recorded after their answers. */
  readonly unpaidQuotes: PromiseTracker;
  readonly log: OperatorLog;
}

/** How many quotes may wait to be recorded after their answers: a crash can lose this many. A quote beyond it is recorded before. */
const mostBehind = 256;

/** A quote for these terms, which anyone may pay for anything if they say no more. Its random salt makes its digest unique. */
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
  context: TermsPorts,
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
 * What `accepts` may take of a PAYMENT-REQUIRED of 6 KiB, in bytes of JSON: base64 adds a third, and the rest of the offer, with the
 * longest reason, takes under 1,100.
 */
const maxAcceptsBytes = 3_500;

const fitted = new WeakMap<readonly SettlementOption[], readonly SettlementOption[]>();

/**
 * The first options whose offers fit into the header together; clients and servers refuse longer headers. The last ones are left
 * out, in the order of the configuration, and one is always offered. The same list object for the same list.
 * @param offersOf the offers of a quote of these options, as JSON
 */
function fitOptions(
  options: readonly SettlementOption[],
  offersOf: (options: readonly SettlementOption[]) => string,
): readonly SettlementOption[] {
  let list = fitted.get(options);
  if (!list) {
    list = options;
    while (list.length > 1 && Buffer.byteLength(offersOf(list)) > maxAcceptsBytes) list = list.slice(0, -1);
    fitted.set(options, list);
  }
  return list;
}

/**
 * Issues a quote and answers with it. Without a key that authenticates it, the quote is in the ledger before the client gets it.
 * With one it is recorded after the answer or, beyond the ledger's allowance, summarised: its offer says which. If the facilitator
 * settles none of the accepted tokens, there is nothing to offer and no quote is issued.
 */
export async function quoteJob(
  context: QuotePorts,
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
  { receiptKeys }: { readonly receiptKeys: ReceiptKeys },
  refused: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
  { quote, digest }: NamedQuote,
): PaymentRequired {
  const secret = offerSecret(receiptKeys, digest);
  return offerOfQuote(refused, quote, { digest, secret, echoes: undefined, isNamed: true });
}

function offerOfQuote(
  { job, code, reason }: Pick<OfferRefusal, 'job' | 'code' | 'reason'>,
  { serviceId, jobIndex, expiresAt, options, inputsHash }: Quote,
  offer: Pick<PaymentRequired['quote'], 'digest' | 'secret' | 'echoes' | 'isNamed'>,
): PaymentRequired {
  const { description, discovery } = job;
  const isForOneRequest = inputsHash !== zeroHash;
  const of = {
    serviceId,
    jobIndex,
    expiresAt,
    options,
    input: inputJson(job),
    description,
    discovery,
    isForOneRequest,
  };
  return { kind: 'payment_required', code, reason, quote: { ...of, ...offer } };
}

/** What the offers of a quote's options carry: the echoes in the order of the options. */
function offerOf({ quoteKeys: keys, quoteRealm: realm, receiptKeys }: TermsPorts, quote: Quote) {
  const digest = quoteDigest(quote);
  const echoes = keys && quote.options.map((option) => writeQuoteEcho(keys, realm, quote, digest, option));
  return { digest, secret: offerSecret(receiptKeys, digest), echoes };
}

/** Where the start of its payment was faster, the quote is recorded already. */
export async function recordQuote(
  { lane }: { readonly lane: Lane },
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
async function recordBehind(context: QuotePorts, quote: Quote, digest: Hex): Promise<void> {
  try {
    await recordQuote(context, quote, digest, { urgent: true });
  } catch (error) {
    const { log } = context;
    log.warn({ err: error }, 'an unpaid quote was not recorded: it is recorded when it is paid');
  }
}

export interface IssuedPorts {
  readonly pool: pg.Pool;
  readonly receiptKeys: ReceiptKeys;
  readonly log: OperatorLog;
}

/** Why the quote that a token names is not offered. */
type NotOffered =
  | 'malformed_quote_token'
  | 'repeated_quote_token'
  | 'unknown_quote'
  | 'quote_of_another_job'
  | 'matches_no_option'
  | 'inputs_hash_mismatch'
  | 'quote_revoked'
  | 'quote_expired'
  | 'quote_ended';

/**
 * The quote that a token in the address of a request without a payment names, if it can be paid now by this request. The ledger is
 * asked only for a token that a gateway of this ledger made.
 * @param given the query parameter as it came: a list if it is repeated
 */
export async function findIssuedQuote(
  { pool, receiptKeys, log }: IssuedPorts,
  job: Job,
  given: string | readonly string[],
  request: WholeRequest,
): Promise<NamedQuote | NotOffered> {
  if (typeof given !== 'string') return 'repeated_quote_token';
  const token = readQuoteToken(given);
  if (!token) return 'malformed_quote_token';
  const { quote, digest, proof } = token;
  if (!isQuoteTokenProof(receiptKeys, digest, proof, log)) return 'unknown_quote';
  if (quote.serviceId !== job.serviceId || quote.jobIndex !== job.jobIndex) return 'quote_of_another_job';
  // a quote from before the job sold credit, or from when it did
  if (quote.options.some(({ creditMicros }) => job.isTopUp !== (creditMicros !== undefined)))
    return 'matches_no_option';
  // its payer is not known yet
  const terms = { ...quote, source: 'pricing' } as const;
  if (checkQuoteBinding(job, request, terms, undefined).kind === 'broken') return 'inputs_hash_mismatch';
  const [{ events, nowSecs: readAt }, { beforeSecs }] = await Promise.all([
    readStream(pool, digest),
    readRevocation(pool),
  ]);
  const state = foldQuote(events);
  if (!state.quote) return 'unknown_quote';
  if (quote.issuedAt < beforeSecs) return 'quote_revoked';
  if (quote.expiresAt <= readAt) return 'quote_expired';
  return isOpen(state, readAt) ? { quote, digest } : 'quote_ended';
}
