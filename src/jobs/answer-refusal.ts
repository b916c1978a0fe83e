import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { JobAnswer, Refused } from './answer.ts';
import type { JobsContext } from './context.ts';
import { type BoundRequest, requestStream } from './job-request.ts';
import { answerKnownPayment, lookUpPayment } from './known-payment.ts';
import { quoteJob } from './quote-job.ts';
import type { ErrorRefusal, JobRefusal } from './refusal.ts';

/** The payment of a request: absent, unreadable, or decoded. */
export type SentPayment =
  | { readonly kind: 'none' }
  | { readonly kind: 'undecodable'; readonly reason: string }
  | { readonly kind: 'decoded'; readonly decoded: DecodedPayment };

/**
 * The only place that records a refusal and answers. A quote beyond the gateway's own limit is not issued, and nothing is
 * recorded. Writing a new quote takes time: if another request
 * with the same payment has started it meanwhile, the answer is that payment's own, since a payer who gets a 402 signs again
 * and pays twice.
 */
export async function answerRefusal(
  context: JobsContext,
  request: BoundRequest,
  sent: SentPayment,
  refusal: JobRefusal,
): Promise<JobAnswer> {
  if ('job' in refusal && !context.quoteRate.take()) return { kind: 'refused', code: 'overloaded' };
  const [answer] = await Promise.all([
    'job' in refusal ? quoteJob(context, refusal) : errorAnswer(refusal),
    recordRefusal(context, request, refusal),
  ]);
  if (answer.kind === 'payment_required' && sent.kind === 'decoded') {
    const lookUp = await lookUpPayment(context, sent.decoded);
    const known = await answerKnownPayment(context, sent.decoded, request.binding, lookUp);
    if (known.kind === 'answered') return known.answer;
  }
  return answer;
}

/**
 * A client over its budget gets its answer, but no entry in the ledger. A denied caller is recorded in the quote's own stream
 * only while nothing else has happened to that quote.
 */
async function recordRefusal(
  context: JobsContext,
  request: BoundRequest,
  { record }: JobRefusal,
): Promise<void> {
  if (record.kind === 'none') return;
  const { event } = record;
  if (record.kind === 'in_quote') {
    const { digest, version } = record;
    const appended = await context.lane.append({ stream: digest, expect: version, events: [event] });
    if (appended.outcome === 'ok') return;
  }
  if (request.charge.waitSecs() > 0) return;
  await context.lane.append({ stream: requestStream(request), events: [event] });
}

function errorAnswer({ code, retryAfterSecs, details }: ErrorRefusal): Refused {
  return {
    kind: 'refused',
    code,
    ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }),
    ...(details ? { details } : {}),
  };
}
