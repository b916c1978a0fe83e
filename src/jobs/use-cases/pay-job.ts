import { paymentSummary, paymentToData } from '../../payments/rules/payment.ts';
import { foldQuote, paymentOf } from '../../payments/rules/quote-state.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { settlePayment, type SettlementPorts } from '../../payments/use-cases/settle-payment.ts';
import type { StartedPayment } from '../../payments/use-cases/record-settlement.ts';
import { acceptedAnswer, type JobAnswer, type PaymentAnswer } from './answer.ts';
import { answerRefusal, type RefusalPorts } from './answer-refusal.ts';
import type { Job } from './catalog.ts';
import { checkPayment, type CheckPorts } from './check-payment.ts';
import {
  checkHead,
  checkRequest,
  findSoldJob,
  type RequestCheck,
  type RequestPorts,
} from './check-request.ts';
import type { Config, JobsConfig } from '../../base/config/config.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import type { SeenQuotes } from './seen-quotes.ts';
import { findIssuedQuote, type IssuedPorts } from './quote-job.ts';
import { bindRequest, type OpenedRequest, type PaidRequest, type WholeRequest } from './job-request.ts';
import { acceptedOnRecord, answerKnownPayment } from './known-payment.ts';
import { type MatchedPayment, matchQuote } from './match-quote.ts';
import { type JobRefusal, offerRefusal, paymentReplay, refusal, rejectedPayment } from './refusal.ts';
import { redeliver, type RedeliveryPorts } from './redeliver.ts';
import { type PaymentStart, startPayment, type StartPorts } from './start-payment.ts';

export interface PayPorts
  extends RequestPorts, CheckPorts, StartPorts, SettlementPorts, RedeliveryPorts, RefusalPorts, IssuedPorts {
  readonly settings: JobsConfig;
  readonly config: Config;
  readonly seenQuotes: SeenQuotes;
  readonly settling: Map<string, Promise<unknown>>;
  /** Requests in the paid flow, whether or not their clients are still connected: a shutdown waits for them. */
  readonly flows: PromiseTracker;
}

/** How often other appends may move the quote's stream under a payment before the answer is `quote_in_use`. */
const maxTries = 3;

/**
 * Takes a request for a job through the paid flow of the contract, in its order: known payment → request → payment → start →
 * settle → answer. All that can refuse it is checked before money moves, and from `settlement_started` on it is finished whatever
 * happens. Never throws for anything a client or a peer did; throws if the ledger cannot be reached.
 */
export function payForJob(context: PayPorts, request: OpenedRequest, body: Buffer): Promise<JobAnswer> {
  return context.flows.add(answerRequest(context, { ...request, body }));
}

/**
 * The answer of a request that its headers alone refuse, so that its body need not be read; undefined for any other. A payment
 * may be known already, and is then answered from its own state, which takes the body.
 */
export function refuseByHead(context: PayPorts, request: OpenedRequest): Promise<JobAnswer> | undefined {
  if (request.sent.kind === 'decoded') return undefined;
  const checked = checkHead(context, request);
  return checked.kind === 'refusal' ? context.flows.add(answerRefusal(context, request, checked)) : undefined;
}

/** A body over the limit is refused unread, unless there is no such job. */
export function refuseUnreadBody(context: PayPorts, request: OpenedRequest): Promise<JobAnswer> {
  const sold = findSoldJob(context, request);
  return answerRefusal(context, request, sold.kind === 'refusal' ? sold : refusal(request, 'body_too_large'));
}

async function answerRequest(context: PayPorts, request: WholeRequest): Promise<JobAnswer> {
  const { sent } = request;
  const paid = sent.kind === 'decoded' ? { ...bindRequest(request), decoded: sent.decoded } : undefined;
  const result = await (paid ? takePayment(context, paid) : refuseUnpaid(context, request));
  // a payment of unknown outcome holds a call, or costs a look at the chain, which must not be free
  const isPending =
    (result.kind === 'pending' && !result.replayed) ||
    (result.kind === 'unproven' && result.status === 'pending');
  if (result.kind === 'refusal' || isPending) request.charge.chargeAgain();
  else request.charge.refund();
  return result.kind === 'refusal' ? answerRefusal(context, request, result, paid) : result;
}

/** Step 1 of a request without a payment that can be read: its refusal is the offer. */
async function refuseUnpaid(context: PayPorts, request: WholeRequest): Promise<JobRefusal> {
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

type Started = Extract<PaymentStart, { kind: 'started' }>;

/**
 * Steps 0 to 9 of a request with a payment. A check's refusal counts only after a last look whether this very payment was started
 * meanwhile by another copy of this request: that copy's own settlement can be the reason of the refusal (a used nonce, a
 * quote in use, a full outbox), and a payer who gets a 402 signs again and pays twice.
 */
async function takePayment(context: PayPorts, request: PaidRequest): Promise<PaymentAnswer | JobRefusal> {
  let checkedRequest: RequestCheck | undefined;
  const checkOnce = (): RequestCheck => (checkedRequest ??= checkRequest(context, request));
  let attempt: PaymentStart | JobRefusal | undefined = await startUnread(context, request, checkOnce);
  for (let tries = 0; ; tries++) {
    if (attempt?.kind === 'started') return finishPayment(context, request, attempt);
    const known = await answerKnownPayment(context, request);
    if (known.kind === 'answered') return known.answer;
    if (known.kind === 'replay') return paymentReplay(request.decoded);
    const fit = checkOnce();
    if (fit.kind === 'refusal') return fit;
    const { job } = fit;
    if (known.kind === 'recovered') return redeliver(context, request, job, known.digest);
    if (known.kind === 'failed') return rejectedPayment(job, { stage: 'match', reason: known.reason });
    if (attempt?.kind === 'refusal') return attempt;
    if (attempt && tries >= maxTries) return refusal(request, 'quote_in_use', { digest: attempt.digest });
    const matched = await matchQuote(context, request, job, known.lookUp);
    const checked = matched.kind === 'refusal' ? matched : await checkPayment(context, request, job, matched);
    attempt = checked.kind === 'refusal' ? checked : await startPayment(context, request, job, checked);
    // the append has decided
    if (attempt.kind === 'refusal' && checked.kind !== 'refusal') return attempt;
  }
}

/**
 * Starts a payment whose quote authenticates itself without reading the ledger: a look-up was a sixth of the database's work for a
 * payment. The claims of the start decide, as they do after a look-up, which comes first for a payment that is refused here. Only for the
 * first payment that this process sees on the quote: a repetition would be verified by the facilitator, and looked for on the chain,
 * before its start loses. Undefined where the ledger has to be read first.
 */
async function startUnread(
  context: PayPorts,
  request: PaidRequest,
  checkOnce: () => RequestCheck,
): Promise<Started | JobRefusal | undefined> {
  const { quoteDigest: digest, echo } = request.decoded.terms ?? {};
  if (digest === undefined || !echo || context.seenQuotes.has(digest)) return undefined;
  const fit = checkOnce();
  if (fit.kind === 'refusal') return undefined;
  const { job } = fit;
  const matched = await matchUnread(context, request, job);
  if (!matched || context.seenQuotes.has(digest)) return undefined;
  context.seenQuotes.add(digest);
  const checked = await checkPayment(context, request, job, matched);
  if (checked.kind === 'refusal') return checked;
  const start = await startPayment(context, request, job, checked);
  return start.kind === 'stream_moved' ? undefined : start;
}

/**
 * The payment with the quote that it echoes. A summarised quote has no event yet; any other was recorded after its answer, and has
 * no other event. Where that is wrong, the start meets another version of the quote's stream, and loses.
 */
async function matchUnread(
  context: PayPorts,
  request: PaidRequest,
  job: Job,
): Promise<MatchedPayment | undefined> {
  // the start compares `revokedBefore`
  const unread = { streams: [], quote: { events: [], nowSecs: nowSecs(context) }, revokedBefore: 0 };
  const matched = await matchQuote(context, request, job, unread);
  if (matched.kind === 'refusal' || matched.late) return undefined;
  const { state } = matched;
  if (state.quote?.summarised) return { ...matched, isUnread: true };
  return { ...matched, isUnread: true, state: { ...state, version: 1 }, opening: [] };
}

/**
 * Steps 8 and 9 once `settlement_started` is on record. Any fault from here on is answered as pending, never as a failure: the resolver
 * finishes the payment.
 */
async function finishPayment(
  context: PayPorts,
  request: PaidRequest,
  { started, job, checked: { passedOn, landing } }: Started,
): Promise<PaymentAnswer | JobRefusal> {
  // while its settlement is waited for it takes nothing from the budget
  request.charge.refund();
  const { digest, callId, state } = started;
  const pending: PaymentAnswer = { kind: 'pending', digest, replayed: false };
  const { client } = request;
  const settling = settlePayment(context, started, { client, passedOn, landing });
  context.settling.set(
    digest,
    settling.catch(() => {}),
  );
  try {
    const settled = await settling;
    switch (settled.kind) {
      case 'settled': {
        const { serviceId, jobIndex } = job;
        const payment = paymentSummary(paymentToData(state.payment), settled.transaction);
        const { x402Version } = state.payment;
        return acceptedAnswer(
          context,
          { digest, job: { serviceId, jobIndex }, callId, payment, x402Version, replayed: false },
          { settledAt: settled.at, isRefunded: false },
        );
      }
      case 'failed':
      case 'void':
        // nothing was broadcast, and the chain agrees: the payer may sign another
        return offerRefusal(job, 'payment_invalid', settled.reason);
      case 'unknown':
        return pending;
      case 'superseded':
        return await answerOnRecord(context, job, started);
    }
  } catch (error) {
    context.log.error(
      { quote_digest: digest, err: error },
      'a started payment could not be finished: the resolver finishes it',
    );
    return pending;
  } finally {
    context.settling.delete(digest);
  }
}

/** The answer of a payment whose outcome another process recorded first. */
async function answerOnRecord(
  context: PayPorts,
  job: Job,
  { digest, state: { payment } }: StartedPayment,
): Promise<PaymentAnswer | JobRefusal> {
  const quote = foldQuote((await readStream(context.pool, digest)).events);
  const known = paymentOf(quote, payment);
  switch (known?.status) {
    case 'settled':
      return acceptedOnRecord(context, digest, quote, known, false);
    case 'settlement_failed':
      return offerRefusal(job, 'payment_invalid', known.reason ?? 'settlement_failed');
    case 'settling':
    case 'settlement_unknown':
    case undefined:
      return { kind: 'pending', digest, replayed: false };
  }
}
