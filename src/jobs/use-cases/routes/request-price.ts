import type { OperatorLog } from '../../../base/values/operator-log.ts';
import { canonicalJson } from '../../../base/values/canonical-json.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import {
  type BindingCheck,
  checkBinding,
  inputsHashOf,
  type QuoteBinding,
  zeroHash,
} from '../../../payments/rules/quote.ts';
import type { RequestPrices } from '../../peers/request-prices.ts';
import type { Job } from '../catalog.ts';
import type { WholeRequest } from '../job-request.ts';
import { type JobRefusal, type OfferRefusal, refusal } from '../refusal.ts';
import { topUpOfUnits, unitsOf } from '../top-ups/units.ts';

export interface PricePorts {
  readonly requestPrices: RequestPrices;
  readonly log: OperatorLog;
}

type Asked = Pick<WholeRequest, 'body' | 'method' | 'path' | 'headers'>;

/** What a quote for one request is bound to: all that its price was asked for, or the body of a job that costs the same for each. */
export function boundInput(job: Pick<Job, 'serviceId' | 'jobIndex' | 'route'>, request: Asked): Buffer {
  return job.route?.priceUrl === undefined ? request.body : Buffer.from(priceQuestion(job, request));
}

/**
 * Whether a quote may be paid by this payer for this request. One that buys several units of a top-up takes only the quote that this
 * gateway made for its body: a pricing service quotes one unit, for any body that a client names.
 * @param payer in lower case; undefined if it is not known yet
 */
export function checkQuoteBinding(
  job: Pick<Job, 'serviceId' | 'jobIndex' | 'route' | 'isTopUp'>,
  request: Asked,
  quote: QuoteBinding & { readonly source?: 'pricing' | undefined },
  payer: string | undefined,
): BindingCheck {
  const isOfOneUnit = quote.inputsHash === zeroHash || quote.source !== undefined;
  if (isOfOneUnit && unitsOf(job, request) > 1) return { kind: 'broken', reason: 'inputs_hash_mismatch' };
  return checkBinding(quote, payer, boundInput(job, request));
}

/** What the seller's service is asked, as canonical JSON: the same request is the same text. */
function priceQuestion(
  { serviceId, jobIndex, route }: Pick<Job, 'serviceId' | 'jobIndex' | 'route'>,
  { method, path: target, headers, body }: Asked,
): string {
  const [path = '', ...query] = target.split('?');
  const chosen = (route?.priceHeaders ?? []).map((name) => {
    const value = headers?.[name];
    return [name, value === undefined ? undefined : [value].flat().join(', ')] as const;
  });
  return canonicalJson({
    service_id: serviceId,
    job_index: jobIndex,
    method,
    path,
    query: query.join('?'),
    headers: Object.fromEntries(chosen),
    body_bytes: body.length,
    body_sha256: sha256(body),
  });
}

/** The offer at the price of this request, for which its quote is then alone; a refusal where the seller's service gives no usable price. */
export async function priceOffer(
  { requestPrices, log }: PricePorts,
  request: WholeRequest,
  offer: OfferRefusal,
): Promise<JobRefusal> {
  const { job } = offer;
  if (job.isTopUp) return { ...offer, job: topUpOfUnits(job, request) };
  const { route, priced } = job;
  if (route?.priceUrl === undefined || !priced) return offer;
  const question = priceQuestion(job, request);
  const answer = await requestPrices.ask(route.priceUrl, question, {
    key: request.client,
    body: request.body,
    onAsked: () => request.charge.chargeMore(1),
  });
  if (answer.kind === 'refused')
    return { ...refusal(request, 'invalid_request', { details: [answer.why] }), record: offer.record };
  const fault = answer.kind === 'price' ? priceFault(job, answer.price) : answer.reason;
  if (answer.kind === 'price' && fault === undefined)
    return {
      ...offer,
      job: { ...job, ...priced(answer.price), inputsHash: inputsHashOf(Buffer.from(question)) },
    };
  log.warn(
    { service_id: job.serviceId, job_index: job.jobIndex, reason: fault },
    'the price of a request is not known: nothing is offered for it',
  );
  return {
    ...refusal(request, 'price_unavailable', { reason: fault ?? 'price_malformed' }),
    record: offer.record,
  };
}

/** What is wrong with a price; undefined if it can be offered. The route's own price is the highest. */
function priceFault(highest: Job, { wei, inUsd }: { readonly wei: bigint; readonly inUsd: boolean }) {
  if (inUsd !== highest.inUsd) return 'price_in_another_unit';
  return wei > highest.priceWei ? 'price_too_high' : undefined;
}
