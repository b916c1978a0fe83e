import { isCarriable, mediaTypeOf } from '../domain/payments/job-input.ts';
import { findJob, isSold, type Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import type { BoundRequest, JobRequest } from './job-request.ts';
import { type ErrorRefusal, rateLimited, refusal } from './refusal.ts';

export type RequestCheck = { readonly kind: 'fit'; readonly job: Job } | ErrorRefusal;

/** Step 1: the job, the input and the budget. No peer is asked, and the payment is not looked at. */
export function checkRequest(context: JobsContext, request: BoundRequest): RequestCheck {
  const sold = findSoldJob(context, request);
  if (sold.kind === 'refusal') return sold;
  const refused = checkInput(request, sold.job);
  if (refused.kind === 'refusal') return refused;
  const waitSecs = request.charge.waitSecs();
  return waitSecs > 0 ? rateLimited(waitSecs) : sold;
}

/** Whether there is a job of that id, sold or disabled. */
export function isOffered({ catalog }: JobsContext, { job }: JobRequest): boolean {
  return job !== undefined && findJob(catalog, job) !== undefined;
}

/** The job, if it can be bought. */
export function findSoldJob(context: JobsContext, request: BoundRequest): RequestCheck {
  const job = request.job && findJob(context.catalog, request.job);
  if (!job) return refusal(request, 'job_not_found');
  return isSold(job) ? { kind: 'fit', job } : refusal(request, 'x402_disabled');
}

/** A client must not pay for a body that the runner has to reject. */
function checkInput(request: BoundRequest, job: Job): RequestCheck {
  if (!isCarriable(request.contentType)) return refusal(request, 'invalid_content_type');
  if (!job.input) return { kind: 'fit', job };
  if (mediaTypeOf(request.contentType) !== job.input.contentType) {
    const details = [`this job takes ${job.input.contentType}`];
    return refusal(request, 'unsupported_media_type', { details });
  }
  const details = job.input.check?.(request.body) ?? [];
  return details.length > 0 ? refusal(request, 'input_invalid', { details }) : { kind: 'fit', job };
}
