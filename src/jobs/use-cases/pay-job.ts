import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import type { KnownPayment } from '../../payments/store/payment-lookup.ts';
import type { JobAnswer, PaymentAnswer } from './answer.ts';
import { answerRefusal } from './answer-refusal.ts';
import type { Job } from './catalog.ts';
import { type CheckedPayment, checkPayment } from './check-payment.ts';
import { checkHead, checkRequest, findSoldJob } from './check-request.ts';
import type { JobsContext } from './context.ts';
import { findIssuedQuote } from './find-issued-quote.ts';
import { finishPayment } from './finish-payment.ts';
import { bindRequest, type BoundRequest, type OpenedRequest, type WholeRequest } from './job-request.ts';
import { answerKnownPayment, type KnownPaymentResult, lookUpPayment } from './known-payment.ts';
import { matchQuote } from './match-quote.ts';
import { type JobRefusal, offerRefusal, paymentReplay, refusal, rejectedPayment } from './refusal.ts';
import { redeliver } from './redeliver.ts';
import { type PaymentStart, startPayment } from './start-payment.ts';
import { startUnread } from './start-unread.ts';

type Started = Extract<PaymentStart, { kind: 'started' }>['started'];

/** How often other appends may move the quote's stream under a payment before the answer is `quote_in_use`. */
const maxTries = 3;

/**
 * Takes a request for a job through the paid flow of the contract, in its order: known payment → request → payment → start →
 * finish. All that can refuse it is checked before money moves, and from `settlement_started` on it is finished whatever
 * happens. Never throws for anything a client or a peer did; throws if the ledger cannot be reached.
 */
export function payForJob(context: JobsContext, request: OpenedRequest, body: Buffer): Promise<JobAnswer> {
  return context.flows.add(answerRequest(context, { ...request, body }));
}

/**
 * The answer of a request that its headers alone refuse, so that its body need not be read; undefined for any other. A payment
 * may be known already, and is then answered from its own state, which takes the body.
 */
export function refuseByHead(context: JobsContext, request: OpenedRequest): Promise<JobAnswer> | undefined {
  if (request.sent.kind === 'decoded') return undefined;
  const checked = checkHead(context, request);
  return checked.kind === 'refusal' ? context.flows.add(answerRefusal(context, request, checked)) : undefined;
}

/** A body over the limit is refused unread, unless there is no such job. */
export function refuseUnreadBody(context: JobsContext, request: OpenedRequest): Promise<JobAnswer> {
  const sold = findSoldJob(context, request);
  return answerRefusal(context, request, sold.kind === 'refusal' ? sold : refusal(request, 'body_too_large'));
}

async function answerRequest(context: JobsContext, request: WholeRequest): Promise<JobAnswer> {
  const { sent } = request;
  const paid = sent.kind === 'decoded' ? { ...bindRequest(request), decoded: sent.decoded } : undefined;
  const result = await (paid ? runFlow(context, paid) : refuseUnpaid(context, request));
  // a payment of unknown outcome holds a call, or costs a look at the chain, which must not be free
  const isPending =
    (result.kind === 'pending' && !result.replayed) ||
    (result.kind === 'unproven' && result.status === 'pending');
  if (result.kind === 'refusal' || isPending) request.charge.chargeAgain();
  else request.charge.refund();
  return result.kind === 'refusal' ? answerRefusal(context, request, result, paid) : result;
}

/** Step 1 of a request without a payment that can be read: its refusal is the offer. */
async function refuseUnpaid(context: JobsContext, request: WholeRequest): Promise<JobRefusal> {
  const checked = checkRequest(context, request);
  if (checked.kind === 'refusal') return checked;
  const { job } = checked;
  const { sent, quoteToken } = request;
  if (sent.kind === 'undecodable') return rejectedPayment(job, { stage: 'decode', reason: sent.reason });
  if (quoteToken === undefined) return offerRefusal(job, 'payment_required');
  const named = await findIssuedQuote(context, job, quoteToken, request);
  return typeof named === 'string'
    ? offerRefusal(job, named === 'quote_ended' ? named : 'payment_required', named)
    : { ...offerRefusal(job, 'payment_required'), named };
}

/** Steps 0 and 1 of a request with a payment, then the payment. */
async function runFlow(
  context: JobsContext,
  request: BoundRequest & { readonly decoded: DecodedPayment },
): Promise<PaymentAnswer | JobRefusal> {
  const { decoded } = request;
  const unread = await startUnread(context, request, decoded);
  if (unread.kind === 'started') return finishStarted(context, request, unread.job, unread);
  const lookUp = await lookUpPayment(context, decoded);
  const known = await answerKnownPayment(context, request, lookUp);
  if (known.kind === 'answered') return known.answer;
  if (known.kind === 'replay') return paymentReplay(decoded);
  const checked = checkRequest(context, request);
  if (checked.kind === 'refusal') return checked;
  if (known.kind === 'recovered') return redeliver(context, request, checked.job, decoded, known.digest);
  if (known.kind === 'failed') return resultOf(known, checked.job, decoded);
  return unread.kind === 'refusal' ? unread : takePayment(context, request, checked.job, decoded, lookUp);
}

/** Steps 8 and 9. */
function finishStarted(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  { started, checked }: { readonly started: Started; readonly checked: CheckedPayment },
): Promise<PaymentAnswer | JobRefusal> {
  // while its settlement is waited for it takes nothing from the budget
  request.charge.refund();
  return finishPayment(context, request, job, started, checked.landing);
}

function resultOf(
  known: Exclude<KnownPaymentResult, { kind: 'not_known' | 'recovered' }>,
  job: Job,
  decoded: DecodedPayment,
): PaymentAnswer | JobRefusal {
  switch (known.kind) {
    case 'answered':
      return known.answer;
    case 'failed':
      return rejectedPayment(job, { stage: 'match', reason: known.reason });
    case 'replay':
      return paymentReplay(decoded);
  }
}

/**
 * Steps 2 to 9 for a decoded payment. A check's refusal counts only after a last look whether this very payment was started
 * meanwhile by another copy of this request: that copy's own settlement can be the reason of the refusal (a used nonce, a
 * quote in use, a full outbox), and a payer who gets a 402 signs again and pays twice.
 */
async function takePayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  firstLookUp: KnownPayment,
): Promise<PaymentAnswer | JobRefusal> {
  let lookUp = firstLookUp;
  for (let tries = 1; ; tries++) {
    const matched = await matchQuote(context, request, job, decoded, lookUp);
    const checked = await checkPayment(context, request, job, matched);
    if (checked.kind === 'checked') {
      const start = await startPayment(context, request, job, checked);
      if (start.kind === 'started') return finishStarted(context, request, job, { ...start, checked });
      if (start.kind === 'refusal') return start;
    }
    lookUp = await lookUpPayment(context, decoded);
    const known = await answerKnownPayment(context, { ...request, decoded }, lookUp);
    if (known.kind === 'recovered') return refusal(request, 'payment_recovered', { digest: known.digest });
    if (known.kind !== 'not_known') return resultOf(known, job, decoded);
    if (checked.kind === 'refusal') return checked;
    if (tries === maxTries) return refusal(request, 'quote_in_use', { digest: checked.digest });
  }
}
