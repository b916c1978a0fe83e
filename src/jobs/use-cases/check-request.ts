import { isQueryMethod } from '../../base/values/discovery.ts';
import { jobKey } from '../../base/values/job.ts';
import { isMeantAsOrder, orderFault } from '../../base/values/top-up-order.ts';
import { encodedBody, isCarriable, isPlain, mediaTypeOf } from '../../base/values/job-input.ts';
import { callbackFault } from '../../calls/use-cases/callbacks.ts';
import { readUnits } from './top-ups/units.ts';
import { requestsOfBytes } from '../../base/runtime/budget.ts';
import type { Catalog, Job } from './catalog.ts';
import type { Config } from '../../base/config/config.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import type { OpenedRequest, WholeRequest } from './job-request.ts';
import { type ErrorRefusal, rateLimited, refusal } from './refusal.ts';

export interface RequestPorts {
  readonly lane: Lane;
  readonly config: Config;
  readonly catalog: Catalog;
}

export type RequestCheck = { readonly kind: 'fit'; readonly job: Job } | ErrorRefusal;

/** Step 1: the job, the input and the budget. No peer is asked, and the payment is not looked at. */
export function checkRequest(context: RequestPorts, request: WholeRequest): RequestCheck {
  const fit = checkHead(context, request);
  return fit.kind === 'refusal' || isProbe(request) ? fit : checkInput(context, request, fit.job);
}

/** As much of step 1 as the headers show. */
export function checkHead(context: RequestPorts, request: OpenedRequest): RequestCheck {
  const sold = findSoldJob(context, request);
  if (sold.kind === 'refusal') return sold;
  if (request.declaredBytes > context.config.limits.maxBodyBytes) return refusal(request, 'body_too_large');
  if (!isCarriable(request.contentType)) return refusal(request, 'invalid_content_type');
  // the body of a route is passed on as it is
  if (!request.route && !isPlain(request.headers?.['content-encoding']?.toString()))
    return refusal(request, 'unsupported_media_type', { details: [encodedBody] });
  const fault =
    request.callbackUrl === undefined ? undefined : callbackFault(context.config, request.callbackUrl);
  if (fault) return refusal(request, fault);
  const unsupported = mayBeProbe(request) ? undefined : contentTypeFault(request, sold.job);
  if (unsupported) return unsupported;
  const waitSecs = request.charge.waitSecs();
  return waitSecs > 0 ? rateLimited(waitSecs) : sold;
}

/** The job, if it can be bought. */
export function findSoldJob(context: RequestPorts, request: OpenedRequest): RequestCheck {
  const job = request.job && context.catalog.get(jobKey(request.job));
  if (!job || (job.route !== undefined) !== (request.route !== undefined))
    return refusal(request, 'job_not_found');
  return job.isSold ? { kind: 'fit', job } : refusal(request, 'x402_disabled');
}

/** A probe is longer by some blanks at most. */
const maxProbeBytes = 16;

/**
 * Whether the request may ask only for the offer. Crawlers send no payment and no body, or `{}`, and index only what answers 402.
 */
function mayBeProbe({ sent, declaredBytes }: OpenedRequest): boolean {
  return sent.kind === 'none' && declaredBytes <= maxProbeBytes;
}

function isProbe(request: WholeRequest): boolean {
  return (
    mayBeProbe(request) &&
    request.body.length <= maxProbeBytes &&
    /^\s*(?:\{\s*\})?\s*$/.test(request.body.toString('latin1'))
  );
}

/** What a request must send; undefined for any, and where the schema is that of a query, which describes it to clients. */
function inputOf({ method }: OpenedRequest, { input }: Job): Job['input'] {
  return isQueryMethod(method) ? undefined : input;
}

function contentTypeFault(request: OpenedRequest, job: Job): ErrorRefusal | undefined {
  const input = inputOf(request, job);
  if (!input || mediaTypeOf(request.contentType) === input.contentType) return undefined;
  return refusal(request, 'unsupported_media_type', { details: [`this job takes ${input.contentType}`] });
}

/** A client must not pay for a body that the runner has to reject. */
function checkInput(context: RequestPorts, request: WholeRequest, job: Job): RequestCheck {
  // of any other request the headers were enough
  const unsupported = mayBeProbe(request) ? contentTypeFault(request, job) : undefined;
  if (unsupported) return unsupported;
  const fault = job.isTopUp ? topUpFault(context, request) : undefined;
  const details =
    fault === undefined
      ? (inputOf(request, job)?.check?.(request.body) ?? []).map(({ text }) => text)
      : [fault];
  if (details.length === 0) return { kind: 'fit', job };
  request.charge.chargeMore(requestsOfBytes(request.body.length));
  return refusal(request, 'input_invalid', { details });
}

/** Why the body of a top-up cannot be bought, in words; undefined if it can. */
function topUpFault(context: RequestPorts, request: WholeRequest): string | undefined {
  const order = topUpOrderOf(request);
  if (order !== undefined) return orderFault(context.config.identity?.secrets, order, nowSecs(context));
  const read = readUnits(request);
  return read.kind === 'fault' ? read.text : undefined;
}

/** The body, if it says to whose account the credit of a top-up goes. */
export function topUpOrderOf({ body }: WholeRequest): string | undefined {
  return isMeantAsOrder(body) ? body.toString('latin1') : undefined;
}
