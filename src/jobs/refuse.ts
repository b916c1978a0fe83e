import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { RefusalCode } from '../domain/errors/refusal.ts';
import type { PaymentRequired, Refused } from './answer.ts';
import type { Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import type { BoundRequest } from './job-request.ts';
import { quoteJob } from './quote-job.ts';

/** Refuses a request and writes that down in the request's own stream: nothing else was touched. */
export async function refuse(
  context: JobsContext,
  request: BoundRequest,
  code: RefusalCode,
  more: { readonly quoteDigest?: Hex | undefined; readonly retryAfterSecs?: number } = {},
): Promise<Refused> {
  const { quoteDigest, retryAfterSecs } = more;
  await record(context, request, {
    type: 'request_refused',
    data: {
      code,
      ...(request.job ? { service_id: request.job.serviceId, job_index: request.job.jobIndex } : {}),
      ...(quoteDigest ? { quote_digest: quoteDigest } : {}),
    },
  });
  return { kind: 'refused', code, ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }) };
}

/** Turns a payment away and offers a new quote: the money was not touched, the payer may sign again. */
export async function rejectPayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  why: Pick<EventData<'payment_rejected'>, 'stage' | 'reason' | 'quote_digest' | 'payer'>,
  code: 'payment_invalid' | 'quote_expired' = 'payment_invalid',
): Promise<PaymentRequired | Refused> {
  const rejected: LedgerEvent = {
    type: 'payment_rejected',
    data: { service_id: job.serviceId, job_index: job.jobIndex, ...why },
  };
  const [answer] = await Promise.all([
    quoteJob(context, job, code, why.reason),
    record(context, request, rejected),
  ]);
  return answer;
}

/** A known payment that came with another request. Its stream is not touched: nothing here proves who sent it. */
export async function refuseReplay(
  context: JobsContext,
  request: BoundRequest,
  payment: DecodedPayment,
): Promise<Refused> {
  const { network, payer, nonce, terms } = payment;
  await record(context, request, {
    type: 'replay_denied',
    data: {
      claim: 'payment',
      network,
      ...(terms ? { asset: terms.asset } : {}),
      payer,
      payment_nonce: nonce,
      ...(terms?.quoteDigest ? { quote_digest: terms.quoteDigest } : {}),
    },
  });
  return { kind: 'refused', code: 'payment_replay' };
}

/**
 * Writes an event into the request's own stream. Who has spent its budget is answered all the same, but fills the ledger
 * no further.
 */
export async function record(context: JobsContext, request: BoundRequest, event: LedgerEvent): Promise<void> {
  if (context.budget.spent(request.askers) !== undefined) return;
  await context.lane.append({ stream: requestStream(request), events: [event] });
}

/** What a request does that belongs to no payment's story stands here. */
export function requestStream(request: BoundRequest): string {
  return `request:${request.requestId}`;
}
