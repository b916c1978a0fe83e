import { type DecodedPayment, decodePayment } from '../domain/payments/decode-payment.ts';
import { mediaTypeOf } from '../domain/payments/job-input.ts';
import type { KnownPayment } from '../store/payment-lookup.ts';
import type { JobAnswer, Refused } from './answer.ts';
import { findJob, isSold, type Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import { bindRequest, type BoundRequest, type JobRequest } from './job-request.ts';
import { quoteJob } from './quote-job.ts';
import { answerKnownPayment, lookUpPayment } from './known-payment.ts';
import { refuse, refuseReplay, rejectPayment } from './refuse.ts';
import { takePayment } from './take-payment.ts';

/**
 * Takes a request for a job through the paid flow of the contract, in its order: everything that can refuse it is
 * settled before money moves, and from `settlement_started` on it is finished whatever happens.
 * Never throws for anything a client or a peer did; throws when the ledger cannot be reached.
 */
export function payForJob(context: JobsContext, incoming: JobRequest): Promise<JobAnswer> {
  return context.flows.add(answerRequest(context, bindRequest(incoming)));
}

async function answerRequest(context: JobsContext, request: BoundRequest): Promise<JobAnswer> {
  const { payment: sent } = request;
  const decoded = sent && decodePayment(sent.header, sent.x402Version);
  const answer =
    typeof decoded === 'object'
      ? await answerPayment(context, request, decoded)
      : await sell(context, request, decoded);
  if (isRefusal(answer)) context.budget.charge(request.askers);
  return answer;
}

/** Step 0: a payment that is known is answered from itself alone; one that is not is sold to. */
async function answerPayment(
  context: JobsContext,
  request: BoundRequest,
  decoded: DecodedPayment,
): Promise<JobAnswer> {
  const sighting = await lookUpPayment(context, decoded);
  const recalled = await answerKnownPayment(context, decoded, request.binding, sighting);
  if (!recalled) return sell(context, request, { decoded, sighting });
  if (recalled.kind === 'failed') return sell(context, request, recalled.reason);
  return recalled.kind === 'replay' ? refuseReplay(context, request, decoded) : recalled;
}

/** What counts against a budget. Being told to wait does not: who keeps asking must get in one day. */
function isRefusal(answer: JobAnswer): boolean {
  return answer.kind === 'payment_required' || (answer.kind === 'refused' && answer.code !== 'rate_limited');
}

/** The flow of a payment that is not known yet. A machine word instead of a payment says why there is none. */
async function sell(
  context: JobsContext,
  request: BoundRequest,
  payment: { readonly decoded: DecodedPayment; readonly sighting: KnownPayment } | string | undefined,
): Promise<JobAnswer> {
  const job = soldJob(context, request);
  if (typeof job === 'string') return refuse(context, request, job);
  const unfit = await refuseInput(context, request, job);
  if (unfit) return unfit;
  const retryAfterSecs = context.budget.spent(request.askers);
  if (retryAfterSecs !== undefined) return { kind: 'refused', code: 'rate_limited', retryAfterSecs };
  if (payment === undefined) return quoteJob(context, job, 'payment_required');
  if (typeof payment === 'string')
    return rejectPayment(context, request, job, { stage: 'decode', reason: payment });
  return takePayment(context, request, job, payment.decoded, payment.sighting);
}

/** Nobody pays for what the runner must reject. */
async function refuseInput(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
): Promise<Refused | undefined> {
  if (!job.input) return undefined;
  if (mediaTypeOf(request.contentType) !== job.input.contentType) {
    return {
      ...(await refuse(context, request, 'unsupported_media_type')),
      details: [`this job takes ${job.input.contentType}`],
    };
  }
  const faults = job.input.check?.(request.body) ?? [];
  return faults.length > 0
    ? { ...(await refuse(context, request, 'input_invalid')), details: faults }
    : undefined;
}

function soldJob(context: JobsContext, request: JobRequest): Job | 'job_not_found' | 'x402_disabled' {
  const job = request.job && findJob(context.catalog, request.job);
  if (!job) return 'job_not_found';
  return isSold(job) ? job : 'x402_disabled';
}

/** A body over the limit is turned away unread; where there is no such job, that is what its sender is told. */
export async function refuseUnreadBody(context: JobsContext, incoming: JobRequest): Promise<Refused> {
  const request = bindRequest(incoming);
  const job = soldJob(context, request);
  const answer = await refuse(context, request, typeof job === 'string' ? job : 'body_too_large');
  context.budget.charge(request.askers);
  return answer;
}
