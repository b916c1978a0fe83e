import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobsConfig } from '../../base/config/config.ts';
import { refusals } from '../../base/errors/refusal.ts';
import { discoveryKey } from '../../base/values/discovery.ts';
import {
  offerReceiptKey,
  offersEntry,
  offerPayload,
  type SignedOffer,
} from '../../payments/rules/offer-receipt.ts';
import { type GasSponsoringKey, offeredApprovals } from '../../base/values/gas-sponsoring.ts';
import { offeredExtensions } from '../../base/values/payment-identifier.ts';
import type { SettlementOption } from '../../payments/rules/quote.ts';
import { offersV2Text, offerTextsV2 } from '../../payments/rules/x402.ts';
import { requirementsV1 } from '../../payments/rules/x402-v1.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { PaymentRequired, OfferedQuote } from '../use-cases/answer.ts';
import { jobResource, jobUrl } from '../use-cases/catalog.ts';
import type { Offers } from '../use-cases/offers.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { didOf, type OfferKey } from '../../payments/rules/offer-key.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';

/** What an offer takes from the configuration. */
interface OfferContext {
  readonly settings: Pick<JobsConfig, 'acceptedTokens' | 'maxTimeoutSecs' | 'quoteTtlSecs'>;
  readonly offerKeys: RotatingSecret<OfferKey> | undefined;
  readonly offers: Pick<Offers, 'withoutRate' | 'approvalsFor'>;
  readonly publicUrl: () => string;
}

/** The 402: version 2 in the header, version 1 in the body, where their clients look for them. */
export function sendPaymentRequired(
  context: OfferContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: PaymentRequired,
): FastifyReply {
  noteFacts(request, { quote_digest: answer.quote.digest, code: answer.code });
  const { header, body } = paymentRequiredText(context, answer);
  return reply
    .code(402)
    .header('payment-required', Buffer.from(header, 'utf8').toString('base64'))
    .header('cache-control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(body);
}

/** The JSON of a 402: what `PAYMENT-REQUIRED` encodes, and the body. */
export function paymentRequiredText(
  context: OfferContext,
  { code, reason, quote }: PaymentRequired,
): { readonly header: string; readonly body: string } {
  const { descriptions, offers, ...fixed } = fixedParts(context, quote);
  const { digest, expiresAt, input, isNamed = false, isForOneRequest = false } = quote;
  const whyNone = isNamed ? unnamedByV1 : isForOneRequest ? pricedByRequest : undefined;
  const [acceptsV1, whyNotV1] = whyNone
    ? ['[]', whyNone]
    : [fixed.acceptsV1, fixed.isForV1 ? undefined : version2Only];
  const { sentence } = refusals[code];
  const text = reason === undefined ? sentence : `${sentence} (${reason})`;
  const error = JSON.stringify(text);
  const errorV1 = whyNotV1 === undefined ? error : JSON.stringify(`${text} ${whyNotV1}`);
  const accepts = offersV2Text(offers, quote);
  const { resource, extensions } = fittingDescription(descriptions, accepts);
  const why = reason === undefined ? '' : `,"reason":${JSON.stringify(reason)}`;
  const notOffered = isNamed ? [] : context.offers.withoutRate(context.settings.acceptedTokens);
  const others = notOffered.length === 0 ? '' : `,"not_offered":${JSON.stringify(notOffered)}`;
  const until = new Date(expiresAt * 1_000).toISOString();
  const takes = input ? `,"input":${JSON.stringify(input)}` : '';
  return {
    header: `{"x402Version":2,"error":${error},"resource":${resource},"accepts":${accepts},"extensions":${extensions}}`,
    body:
      `{"x402Version":1,"error":${errorV1},"accepts":${acceptsV1},"code":"${code}"${why},` +
      `"quote_digest":"${digest}","quote_expires_at":"${until}"${takes}${others}}`,
  };
}

/** The body's `accepts` is empty: its reader has version 1 of x402, or would look in vain for the offer. */
const version2Only =
  'x402 version 1 can name none of the accepted networks or schemes: pay with a client of version 2, which reads the offer in the PAYMENT-REQUIRED header.';

/** A version 1 payment names no quote, so that it cannot take this one. */
const unnamedByV1 =
  'x402 version 1 cannot pay the quote that this address names: pay with a client of version 2, which reads the offer in the PAYMENT-REQUIRED header, or ask at the address without its quote parameter.';

/** Nor one whose price is that of one request. */
const pricedByRequest =
  'The price depends on the request, which x402 version 1 cannot name: pay with a client of version 2, which reads the offer in the PAYMENT-REQUIRED header.';

/** The parts of a 402 that are the same in every offer of a job, as JSON. */
interface FixedParts {
  readonly settings: OfferContext['settings'];
  readonly url: string;
  readonly isAnsweredFirst: boolean | undefined;
  readonly approvals: readonly GasSponsoringKey[];
  /** When the signed offers end, in Unix seconds; undefined if none are signed. */
  readonly signedUntil: number | undefined;
  readonly descriptions: Descriptions;
  readonly offers: readonly string[];
  readonly acceptsV1: string;
  /** Whether a client of version 1 can pay. */
  readonly isForV1: boolean;
}

/** The description of a job in an offer, without the ways to pay, as JSON. */
interface Description {
  readonly resource: string;
  readonly extensions: string;
  readonly bytes: number;
}

interface Descriptions {
  readonly longer: readonly Description[];
  readonly shortest: Description;
}

const known = new WeakMap<readonly SettlementOption[], FixedParts>();
/** Those of quotes that addresses name, each of which has its own list. */
const knownNamed = createBoundedCache<Hex, FixedParts>(1_000);

/**
 * Made once for a job's list of options, which is another one after a reload or where the facilitator settles others, and again where it
 * submits other approvals; where offers are signed, also once they would end too long before their quote.
 */
function fixedParts(
  { settings, offerKeys, offers, publicUrl }: OfferContext,
  quote: PaymentRequired['quote'],
): FixedParts {
  const origin = publicUrl();
  const url = jobUrl(origin, quote);
  const { digest, options, expiresAt, isNamed = false } = quote;
  const found = isNamed ? knownNamed.get(digest) : known.get(options);
  const approvals = offers.approvalsFor(options);
  const isOfFlow = found?.isAnsweredFirst === quote.isAnsweredFirst && found?.approvals === approvals;
  if (found?.settings === settings && found.url === url && isOfFlow) {
    const { signedUntil } = found;
    if (signedUntil === undefined || isSignedFor(signedUntil, quote, settings.quoteTtlSecs)) return found;
  }
  const { maxTimeoutSecs } = settings;
  const signed = offerKeys && { [offerReceiptKey]: offersEntry(signOffers(offerKeys, origin, quote)) };
  const least = { ...offeredExtensions, ...offeredApprovals(approvals) };
  const resource = jobResource(origin, quote);
  const forV1 = requirementsV1(quote.options, resource, maxTimeoutSecs, quote.discovery?.outputSchema);
  const parts = {
    settings,
    url,
    signedUntil: signed && expiresAt,
    descriptions: descriptionsOf(origin, quote, signed ? [{ ...least, ...signed }, least] : [least]),
    approvals,
    isAnsweredFirst: quote.isAnsweredFirst,
    offers: offerTextsV2(quote.options, maxTimeoutSecs, quote.isAnsweredFirst),
    acceptsV1: JSON.stringify(forV1),
    isForV1: forV1.length > 0,
  };
  if (isNamed) knownNamed.set(digest, parts);
  else known.set(options, parts);
  return parts;
}

/**
 * From the most to the least: the job's whole entry for facilitators, the entry without schemas, no entry; the same three without the
 * signed offers; and no description. A facilitator gets the whole entry with the payment, signed offers are nowhere else.
 * @param allExtensions the same order of the other extensions: with signed offers, without them
 */
function descriptionsOf(
  origin: string,
  quote: PaymentRequired['quote'],
  allExtensions: readonly Readonly<Record<string, object>>[],
): Descriptions {
  const { discovery } = quote;
  const described = jobResource(origin, quote);
  const entries = discovery ? [discovery.extension, discovery.plain] : [];
  const longer = allExtensions.flatMap((extensions) => [
    ...entries.map((entry) => descriptionText(described, { ...extensions, [discoveryKey]: entry })),
    descriptionText(described, extensions),
  ]);
  const least = allExtensions.at(-1) ?? {};
  return {
    longer,
    shortest: descriptionText(jobResource(origin, { ...quote, description: undefined }), least),
  };
}

function descriptionText(resource: object, extensions: object): Description {
  const texts = { resource: JSON.stringify(resource), extensions: JSON.stringify(extensions) };
  return { ...texts, bytes: Buffer.byteLength(texts.resource) + Buffer.byteLength(texts.extensions) };
}

/**
 * What `accepts` and the job's description may take of a PAYMENT-REQUIRED of 6 KiB, in bytes of JSON: base64 adds a third. The rest
 * is for the longest reason, and for the signature in a payment, which repeats the description.
 */
const maxDescribedBytes = 3_600;

/** The first that fits together with the ways to pay. The shortest one always fits. */
function fittingDescription({ longer, shortest }: Descriptions, accepts: string): Description {
  const left = maxDescribedBytes - Buffer.byteLength(accepts);
  return longer.find(({ bytes }) => bytes <= left) ?? shortest;
}

/** A signed offer for each option of a quote. They end with the quote, and serve the quotes that follow it shortly. */
function signOffers(
  [key]: RotatingSecret<OfferKey>,
  publicUrl: string,
  quote: Pick<OfferedQuote, 'serviceId' | 'jobIndex' | 'url' | 'options' | 'expiresAt'>,
): readonly SignedOffer[] {
  const url = jobUrl(publicUrl, quote);
  const did = didOf(publicUrl);
  return quote.options.map((option, acceptIndex) => {
    const payload = offerPayload(option, url, quote.expiresAt);
    return { acceptIndex, ...key.sign({ kind: 'offer', payload }, did) };
  });
}

/** How much earlier than its quote a signed offer may end, in seconds: a 402 does not wait for new signatures each time. */
const mostEarlySecs = 30;

/** Whether offers that are signed until then, in Unix seconds, end with this quote or shortly before it: never after it. */
function isSignedFor(
  signedUntil: number,
  { expiresAt }: Pick<OfferedQuote, 'expiresAt'>,
  quoteTtlSecs: number,
): boolean {
  const earlySecs = expiresAt - signedUntil;
  return earlySecs >= 0 && earlySecs <= Math.min(mostEarlySecs, quoteTtlSecs / 10);
}
