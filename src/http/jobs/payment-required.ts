import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobsConfig } from '../../config/config.ts';
import { refusals } from '../../domain/errors/refusal.ts';
import type { JobId } from '../../domain/payments/job.ts';
import { offeredExtensions } from '../../domain/payments/payment-identifier.ts';
import type { SettlementOption } from '../../domain/payments/quote.ts';
import { offersV2Text, offerTextsV2 } from '../../domain/payments/x402.ts';
import { requirementsV1 } from '../../domain/payments/x402-v1.ts';
import type { PaymentRequired } from '../../jobs/answer.ts';
import { jobUrl } from '../../jobs/catalog.ts';
import type { Offers } from '../../jobs/offers.ts';
import { noteFacts } from '../server/request-log.ts';

/** What an offer takes from the configuration. */
interface OfferContext {
  readonly settings: Pick<JobsConfig, 'acceptedTokens' | 'maxTimeoutSecs' | 'paymentIdentifier'>;
  readonly offers: Pick<Offers, 'withoutRate'>;
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
  const { resource, extensions, offers, acceptsV1, isForV1 } = fixedParts(context, quote);
  const { digest, expiresAt, input } = quote;
  const { sentence } = refusals[code];
  const text = reason === undefined ? sentence : `${sentence} (${reason})`;
  const error = JSON.stringify(text);
  const errorV1 = isForV1 ? error : JSON.stringify(`${text} ${version2Only}`);
  const accepts = offersV2Text(offers, quote);
  const why = reason === undefined ? '' : `,"reason":${JSON.stringify(reason)}`;
  const notOffered = context.offers.withoutRate(context.settings.acceptedTokens);
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

/** The parts of a 402 that are the same in every offer of a job, as JSON. */
interface FixedParts {
  readonly settings: OfferContext['settings'];
  readonly url: string;
  readonly resource: string;
  readonly extensions: string;
  readonly offers: readonly string[];
  readonly acceptsV1: string;
  /** Whether a client of version 1 can pay. */
  readonly isForV1: boolean;
}

const known = new WeakMap<readonly SettlementOption[], FixedParts>();

/** Made once for a job's list of options, which is another one after a reload or where the facilitator settles others. */
function fixedParts(
  { settings, publicUrl }: OfferContext,
  quote: JobId & Pick<PaymentRequired['quote'], 'options'>,
): FixedParts {
  const url = jobUrl(publicUrl(), quote);
  const found = known.get(quote.options);
  if (found?.settings === settings && found.url === url) return found;
  const { maxTimeoutSecs, paymentIdentifier } = settings;
  const description = `Job ${quote.serviceId}/${quote.jobIndex}`;
  const resource = { url, description, mimeType: 'application/json' };
  const forV1 = requirementsV1(quote.options, resource, maxTimeoutSecs);
  const parts = {
    settings,
    url,
    resource: JSON.stringify(resource),
    extensions: JSON.stringify(offeredExtensions(paymentIdentifier)),
    offers: offerTextsV2(quote.options, maxTimeoutSecs),
    acceptsV1: JSON.stringify(forV1),
    isForV1: forV1.length > 0,
  };
  known.set(quote.options, parts);
  return parts;
}
