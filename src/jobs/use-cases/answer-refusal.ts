import { refusals } from '../../base/errors/refusal.ts';
import type { JobAnswer, PaymentRequired, Refused } from './answer.ts';
import type { LaneCommand } from '../../ledger/store/append-batch.ts';
import type { JobsContext } from './context.ts';
import { findCharged } from './find-charged.ts';
import type { OpenedRequest } from './job-request.ts';
import { answerKnownPayment, type SentRequest } from './known-payment.ts';
import { LaneFullError } from '../../ledger/store/lane.ts';
import { offerNamed, quoteJob } from './quote-job.ts';
import { append } from './start-payment.ts';
import { isRunnerSilent } from '../../calls/use-cases/runner-silence.ts';
import type { ErrorRefusal, JobRefusal, OfferRefusal, RefusalRecord } from './refusal.ts';

/**
 * The only place that records a refusal and answers. What strangers leave in the ledger is bounded: without a key for quotes, one
 * beyond the gateway's own limit is not issued; with a key it is summarised. Their refusals are then only counted. After some answers a
 * payer signs again, and pays twice if the refused payment has moved money. So before those the last look whether another request has
 * started the same payment comes after an append: a start that was decided before can be read by then, even where its commit took long, and
 * one that is decided later is stale where the payment was refused for its time. Then the chain is asked whether the payment has landed.
 */
export async function answerRefusal(
  context: JobsContext,
  request: Pick<OpenedRequest, 'stream' | 'charge'>,
  refusal: JobRefusal,
  paid?: SentRequest & Pick<OpenedRequest, 'job'>,
): Promise<JobAnswer> {
  const hasKey = context.quoteKeys !== undefined;
  const isNewQuote = 'job' in refusal && !refusal.named;
  if (isNewQuote && !hasKey && !context.quoteRate.take()) {
    sum(context, refusal.record);
    return { kind: 'refused', code: 'overloaded', reason: 'quotes_per_second' };
  }
  const isOnlyCounted =
    'job' in refusal && hasKey && refusal.record.kind !== 'none' && !context.rejectionEvents.take();
  const [answer, isAppended] = await Promise.all([
    'job' in refusal ? offerJob(context, refusal) : errorAnswer(refusal),
    isOnlyCounted ? sum(context, refusal.record) : recordRefusal(context, request, refusal),
  ]);
  if (paid && ('job' in refusal || mayBeSignedAnew(answer))) {
    if (!isAppended && (await append(context, nothingFor(request))).outcome === 'full')
      return { kind: 'refused', code: 'overloaded', reason: 'lane_full' };
    const known = await answerKnownPayment(context, paid);
    if (known.kind === 'answered') return known.answer;
    // a refusal of this code says why it is not delivered
    if (known.kind === 'recovered' && refusal.code !== 'payment_recovered')
      return { kind: 'refused', code: 'payment_recovered' };
    const { job, decoded } = paid;
    const charged =
      known.kind === 'not_known' &&
      (await findCharged(context, { job, decoded, code: refusal.code }, known.lookUp));
    if (charged) return { kind: 'refused', code: charged };
  }
  return answer;
}

const signedAnewStatuses: ReadonlySet<number> = new Set([403, 404, 409, 415, 422]);

/** Whether a client signs another payment after this answer: after any other it sends the same one again. */
function mayBeSignedAnew(answer: PaymentRequired | Refused): boolean {
  return answer.kind === 'payment_required' || signedAnewStatuses.has(refusals[answer.code].status);
}

/**
 * A client over its budget gets its answer, and its refusal is only counted; so is one that a full lane does not take. A denied
 * caller is recorded in the quote's own stream only while nothing else has happened to that quote. True where it was appended.
 */
export async function recordRefusal(
  context: Pick<JobsContext, 'lane' | 'requestTally'>,
  request: Pick<OpenedRequest, 'stream' | 'charge'>,
  { record }: Pick<JobRefusal, 'record'>,
): Promise<boolean> {
  if (record.kind === 'none') return false;
  if (record.kind === 'summed' || request.charge.waitSecs() > 0) return sum(context, record);
  const { event } = record;
  try {
    if (record.kind === 'in_quote') {
      const { digest, version } = record;
      const appended = await context.lane.append({ stream: digest, expect: version, events: [event] });
      if (appended.outcome === 'ok') return true;
    }
    const passed = record.kind === 'in_request' && record.passed;
    const events = passed ? [passed, event] : [event];
    await context.lane.append({ stream: request.stream, events });
    return true;
  } catch (error) {
    if (!(error instanceof LaneFullError)) throw error;
    return sum(context, record);
  }
}

function sum({ requestTally }: Pick<JobsContext, 'requestTally'>, record: RefusalRecord): false {
  if (record.kind !== 'none')
    requestTally.addRefusal(record.kind === 'summed' ? record.type : record.event.type);
  return false;
}

/** Only its place in the order of appends counts. */
function nothingFor(request: Pick<OpenedRequest, 'stream'>): LaneCommand {
  return { stream: request.stream, events: [] };
}

/** No quote for what would be refused when it is paid. */
async function offerJob(context: JobsContext, refusal: OfferRefusal): Promise<PaymentRequired | Refused> {
  const { job, named } = refusal;
  if (isRunnerSilent(context.runnerSilence, job)) return { kind: 'refused', code: 'runner_unavailable' };
  return named ? offerNamed(context, refusal, named) : quoteJob(context, refusal);
}

function errorAnswer({ code, retryAfterSecs, reason, details }: ErrorRefusal): Refused {
  return {
    kind: 'refused',
    code,
    ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }),
    ...(reason === undefined ? {} : { reason }),
    ...(details ? { details } : {}),
  };
}
