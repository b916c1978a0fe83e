import { type DecodedPayment, decodePayment } from '../domain/decode-payment.ts';
import { mediaTypeOf } from '../domain/job-input.ts';
import type { PaymentSighting } from '../store/payment-lookup.ts';
import type { JobAnswer, Refused } from './answer.ts';
import { findJob, isSold, type Job } from './catalog.ts';
import type { Gateway } from './gateway.ts';
import { bindRequest, type BoundRequest, type JobRequest } from './job-request.ts';
import { quoteJob } from './quote-job.ts';
import { recallPayment, sightPayment } from './recall-payment.ts';
import { refuse, refuseReplay, rejectPayment } from './refuse.ts';
import { takePayment } from './take-payment.ts';

/**
 * Takes a request for a job through the paid flow of the contract, in its order: everything that can refuse it is
 * settled before money moves, and from `settlement_started` on it is finished whatever happens.
 * Never throws for anything a client or a peer did; throws when the ledger cannot be reached.
 */
export function payForJob(gateway: Gateway, incoming: JobRequest): Promise<JobAnswer> {
  const flow = answerRequest(gateway, bindRequest(incoming));
  const kept = flow.catch(() => {}).finally(() => gateway.flows.delete(kept));
  gateway.flows.add(kept);
  return flow;
}

async function answerRequest(gateway: Gateway, request: BoundRequest): Promise<JobAnswer> {
  const { payment: sent } = request;
  const decoded = sent && decodePayment(sent.header, sent.x402Version);
  const answer =
    typeof decoded === 'object'
      ? await answerPayment(gateway, request, decoded)
      : await sell(gateway, request, decoded);
  if (isRefusal(answer)) gateway.budget.charge(request.askers);
  return answer;
}

/** Step 0: a payment that is known is answered from itself alone; one that is not is sold to. */
async function answerPayment(
  gateway: Gateway,
  request: BoundRequest,
  decoded: DecodedPayment,
): Promise<JobAnswer> {
  const sighting = await sightPayment(gateway, decoded);
  const recalled = await recallPayment(gateway, decoded, request.binding, sighting);
  if (!recalled) return sell(gateway, request, { decoded, sighting });
  if (recalled.kind === 'failed') return sell(gateway, request, recalled.reason);
  return recalled.kind === 'replay' ? refuseReplay(gateway, request, decoded) : recalled;
}

/** What counts against a budget. Being told to wait does not: who keeps asking must get in one day. */
function isRefusal(answer: JobAnswer): boolean {
  return answer.kind === 'payment_required' || (answer.kind === 'refused' && answer.code !== 'rate_limited');
}

/** The flow of a payment that is not known yet. A machine word instead of a payment says why there is none. */
async function sell(
  gateway: Gateway,
  request: BoundRequest,
  payment: { readonly decoded: DecodedPayment; readonly sighting: PaymentSighting } | string | undefined,
): Promise<JobAnswer> {
  const job = soldJob(gateway, request);
  if (typeof job === 'string') return refuse(gateway, request, job);
  const unfit = await refuseInput(gateway, request, job);
  if (unfit) return unfit;
  const retryAfterSecs = gateway.budget.spent(request.askers);
  if (retryAfterSecs !== undefined) return { kind: 'refused', code: 'rate_limited', retryAfterSecs };
  if (payment === undefined) return quoteJob(gateway, job, 'payment_required');
  if (typeof payment === 'string')
    return rejectPayment(gateway, request, job, { stage: 'decode', reason: payment });
  return takePayment(gateway, request, job, payment.decoded, payment.sighting);
}

/** Nobody pays for what the runner must reject. */
async function refuseInput(gateway: Gateway, request: BoundRequest, job: Job): Promise<Refused | undefined> {
  if (!job.input) return undefined;
  if (mediaTypeOf(request.contentType) !== job.input.contentType) {
    return {
      ...(await refuse(gateway, request, 'unsupported_media_type')),
      details: [`this job takes ${job.input.contentType}`],
    };
  }
  const faults = job.input.check?.(request.body) ?? [];
  return faults.length > 0
    ? { ...(await refuse(gateway, request, 'input_invalid')), details: faults }
    : undefined;
}

function soldJob(gateway: Gateway, request: JobRequest): Job | 'job_not_found' | 'x402_disabled' {
  const job = request.job && findJob(gateway.catalog, request.job);
  if (!job) return 'job_not_found';
  return isSold(job) ? job : 'x402_disabled';
}

/** A body over the limit is turned away unread; where there is no such job, that is what its sender is told. */
export async function refuseUnreadBody(gateway: Gateway, incoming: JobRequest): Promise<Refused> {
  const request = bindRequest(incoming);
  const job = soldJob(gateway, request);
  const answer = await refuse(gateway, request, typeof job === 'string' ? job : 'body_too_large');
  gateway.budget.charge(request.askers);
  return answer;
}
