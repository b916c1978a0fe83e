import { paymentSummary, paymentToData } from '../../payments/rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { foldQuote, paymentOf } from '../../payments/rules/quote-state.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { isTooMuch, movedAtoms } from '../../payments/rules/settlement.ts';
import { settlePayment, type SettlementPorts } from '../../payments/use-cases/settle-payment.ts';
import type { StartedPayment } from '../../payments/use-cases/record-settlement.ts';
import { acceptedAnswer, type JobAnswer, type PaymentAnswer } from './answer.ts';
import { answerRefusal, type RefusalPorts } from './answer-refusal.ts';
import type { Job } from './catalog.ts';
import { type CheckedPayment, checkPayment, type CheckPorts } from './check-payment.ts';
import {
  checkHead,
  checkRequest,
  findSoldJob,
  type RequestCheck,
  type RequestPorts,
} from './check-request.ts';
import type { Config, JobsConfig } from '../../base/config/config.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import { findIssuedQuote, type IssuedPorts } from './quote-job.ts';
import { bindRequest, type OpenedRequest, type PaidRequest, type WholeRequest } from './job-request.ts';
import { acceptedOnRecord, answerKnownPayment, type KnownPaymentResult } from './known-payment.ts';
import { type MatchedPayment, matchQuote } from './match-quote.ts';
import {
  enqueueFailed,
  type JobRefusal,
  offerRefusal,
  paymentReplay,
  refusal,
  rejectedPayment,
} from './refusal.ts';
import { redeliver, type RedeliveryPorts } from './redeliver.ts';
import { askAgain, askFirst, type Asking, type AskPorts } from './routes/answer-first.ts';
import { firstLease, leasedByRequest } from './routes/first-lease.ts';
import { type PricePorts, priceOffer } from './routes/request-price.ts';
import { isAnsweredFirst, type Unanswered, type WholeAnswer } from './routes/route-request.ts';
import { changePlaces, maxUnpaidAnswers } from './capacity.ts';
import { type PaymentStart, startPayment, type StartPorts } from './start-payment.ts';

export interface PayPorts
  extends
    RequestPorts,
    CheckPorts,
    StartPorts,
    SettlementPorts,
    RedeliveryPorts,
    RefusalPorts,
    IssuedPorts,
    AskPorts,
    PricePorts {
  readonly settings: JobsConfig;
  readonly config: Config;
  readonly seenQuotes: ReturnType<typeof createSeenQuotes>;
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

/** The answer of a request without a readable payment that its headers alone refuse, so that its body need not be read; undefined for any other. */
export function refuseByHead(context: PayPorts, request: OpenedRequest): Promise<JobAnswer> | undefined {
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
    result.kind === 'passed_on' ||
    (result.kind === 'pending' && !result.replayed) ||
    (result.kind === 'unproven' && result.status === 'pending');
  if (result.kind === 'refusal' || isPending) request.charge.chargeAgain();
  else request.charge.refund();
  if (result.kind !== 'refusal') return result;
  const refused = 'job' in result && !result.named ? await priceOffer(context, request, result) : result;
  return answerRefusal(context, request, refused, paid);
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
 * Steps 0 to 9 of a request with a payment, in one order, until an append has decided. A check's refusal counts only after a last look
 * whether this very payment was started meanwhile by another copy of this request: that copy's own settlement can be the reason of the
 * refusal (a used nonce, a quote in use, a full outbox), and a payer who gets a 402 signs again and pays twice.
 */
async function takePayment(context: PayPorts, request: PaidRequest): Promise<PaymentAnswer | JobRefusal> {
  let fit: RequestCheck | undefined;
  let attempt: Exclude<PaymentStart, Started> | undefined;
  let tries = 0;
  for (let isRead = !mayStartUnread(context, request); ; isRead = true) {
    const known = isRead ? await answerKnownPayment(context, request) : unread(context);
    if (known.kind === 'answered') return known.answer;
    if (known.kind === 'replay') return paymentReplay(request.decoded);
    fit ??= checkRequest(context, request);
    if (fit.kind === 'refusal') {
      if (isRead) return fit;
      continue;
    }
    const { job } = fit;
    if (known.kind === 'unanswered') return repeatRequest(context, request, job, known);
    if (known.kind === 'recovered') return redeliver(context, request, job, known.digest);
    if (known.kind === 'failed') return rejectedPayment(job, { stage: 'match', reason: known.reason });
    if (attempt?.kind === 'refusal') return attempt;
    if (attempt && tries >= maxTries) return refusal(request, 'quote_in_use', { digest: attempt.digest });
    const found = await matchQuote(context, request, job, known.lookUp);
    const matched = isRead ? found : asUnread(context, found);
    if (!matched) continue;
    const checked = matched.kind === 'refusal' ? matched : await checkPayment(context, request, job, matched);
    const start = checked.kind === 'refusal' ? checked : await startInPlace(context, request, job, checked);
    if (start.kind === 'started') return finishPayment(context, request, start);
    // the append has decided
    if (isRead && start.kind === 'refusal' && checked.kind !== 'refusal') return start;
    attempt = start;
    if (isRead) tries++;
  }
}

/** Of each half: at 2,000 payments a second, half a minute to a minute is remembered. */
const mostRemembered = 65_536;

/**
 * The quotes whose payments this process has seen: the next payment on one of them may be a repetition, which would be verified by the
 * facilitator, and looked for on the chain, before its start loses. The latest are remembered. A forgotten one costs a verification too
 * many and nothing else: the append that starts a payment decides.
 */
export function createSeenQuotes() {
  let latest = new Set<string>();
  let before = new Set<string>();
  const has = (digest: string): boolean => latest.has(digest) || before.has(digest);
  return {
    has,
    /** False where it was seen before. */
    add(digest: string): boolean {
      if (has(digest)) return false;
      if (latest.size >= mostRemembered) [before, latest] = [latest, new Set()];
      latest.add(digest);
      return true;
    },
  };
}

/**
 * Whether a payment may be started without reading the ledger: its quote may authenticate itself. A look-up was a sixth of the
 * database's work for a payment. The claims of the start decide, as they do after a look-up, which comes first for a payment that is
 * refused here. Only for the first payment that this process sees on the quote.
 */
function mayStartUnread({ seenQuotes }: PayPorts, { decoded: { terms } }: PaidRequest): boolean {
  return terms?.quoteDigest !== undefined && terms.echo !== undefined && !seenQuotes.has(terms.quoteDigest);
}

/** What stands for a look-up that is left out. The start compares `revokedBefore`. */
function unread(context: PayPorts): Extract<KnownPaymentResult, { kind: 'not_known' }> {
  return {
    kind: 'not_known',
    lookUp: { streams: [], quote: { events: [], nowSecs: nowSecs(context) }, revokedBefore: 0 },
  };
}

/**
 * A payment with the quote that it echoes; undefined where the ledger has to be read first. A summarised quote has no event yet; any
 * other was recorded after its answer, and has no other event. Where that is wrong, the start meets another version of the quote's
 * stream, and loses.
 */
function asUnread(
  { seenQuotes }: PayPorts,
  matched: MatchedPayment | JobRefusal,
): MatchedPayment | undefined {
  if (matched.kind === 'refusal' || matched.late) return undefined;
  const { digest, state } = matched;
  // another copy may have come while it was matched
  if (!seenQuotes.add(digest)) return undefined;
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
  { started: begun, job, checked, askedUntil }: Started,
): Promise<PaymentAnswer | JobRefusal> {
  const { digest } = begun;
  const answering = (): Promise<PaymentAnswer | JobRefusal> => {
    if (askedUntil === undefined) return settleStarted(context, request, job, begun, checked);
    const caller = checked.caller?.address;
    const quotedWei = BigInt(checked.state.quote?.price_wei ?? job.priceWei);
    const asking = { started: begun, attempt: 1, endsAt: askedUntil, caller, quotedWei };
    return answerThenSettle(context, request, job, asking, checked);
  };
  return whileSettling(context, digest, answering);
}

/** Any fault of a started payment is answered as pending, never as a failure: the resolver finishes it. Copies of its request wait for it. */
async function whileSettling(
  context: PayPorts,
  digest: Hex,
  work: () => Promise<PaymentAnswer | JobRefusal>,
): Promise<PaymentAnswer | JobRefusal> {
  const working = work();
  context.settling.set(
    digest,
    working.catch(() => {}),
  );
  try {
    return await working;
  } catch (error) {
    context.log.error(
      { quote_digest: digest, err: error },
      'a started payment could not be finished: the resolver finishes it',
    );
    return { kind: 'pending', digest, replayed: false };
  } finally {
    context.settling.delete(digest);
  }
}

type Settling = Pick<Started['checked'], 'passedOn' | 'landing' | 'caller'>;

/** Another attempt for a payment whose process died while its upstream was asked. */
async function repeatRequest(
  context: PayPorts,
  request: PaidRequest,
  job: Job,
  unanswered: Unanswered,
): Promise<PaymentAnswer | JobRefusal> {
  const { digest } = unanswered;
  const { route } = request;
  if (!route) return { kind: 'pending', digest, replayed: true };
  const asking = await askAgain(context, request, route, unanswered);
  if (!('started' in asking))
    return asking.kind === 'not_charged'
      ? rejectedPayment(job, { stage: 'match', reason: 'upstream_lost', quote_digest: digest })
      : { kind: 'pending', digest, replayed: true };
  const settling = { passedOn: {}, landing: { kind: 'not_landed' }, caller: undefined } as const;
  changePlaces(context, asking.started.state.payment.payer, 1);
  return whileSettling(context, digest, () => answerThenSettle(context, request, job, asking, settling));
}

/** The upstream answers before its payment is settled: what is not charged costs the client nothing. */
async function answerThenSettle(
  context: PayPorts,
  request: PaidRequest,
  job: Job,
  asking: Asking,
  settling: Settling,
): Promise<PaymentAnswer | JobRefusal> {
  const {
    digest,
    state: {
      payment: { payer },
    },
  } = asking.started;
  if (!request.route) throw new Error('a job without a route has no upstream');
  const route = context.unpaidStreams.isOf(payer) ? { ...request.route, passOn: undefined } : request.route;
  // its place was taken before its start
  const asked = await askFirst(context, request, job, route, asking).finally(() =>
    changePlaces(context, payer, -1),
  );
  switch (asked.kind) {
    case 'answered': {
      const result = await settleStarted(context, request, job, asked.started, settling, asked.answer);
      if (asked.isPassedOn && result.kind !== 'accepted') context.unpaidStreams.note(payer);
      return result;
    }
    case 'superseded':
      return answerOnRecord(context, job, asking.started);
    case 'not_charged':
      return asked.answer
        ? { kind: 'passed_on', digest, answer: asked.answer }
        : refusal(request, 'upstream_unanswered', { digest, reason: asked.reason });
  }
}

/** A payer has few places for requests that are answered before they are settled: taken before the start, given back where none is made. */
async function startInPlace(
  context: PayPorts,
  request: PaidRequest,
  job: Job,
  checked: CheckedPayment,
): Promise<PaymentStart> {
  if (!isAnsweredFirst(request) || checked.landing.kind === 'landed')
    return startPayment(context, request, job, checked);
  const { payer } = checked.payment;
  if ((context.asking.get(payer) ?? 0) >= maxUnpaidAnswers)
    return enqueueFailed(job, checked.digest, 'too_many_unpaid_answers', checked.caller);
  changePlaces(context, payer, 1);
  let isStarted = false;
  try {
    const start = await startPayment(context, request, job, checked);
    isStarted = start.kind === 'started';
    return start;
  } finally {
    if (!isStarted) changePlaces(context, payer, -1);
  }
}

/** @param answer the stored answer of the upstream, which the append that settles its payment completes */
async function settleStarted(
  context: PayPorts,
  request: PaidRequest,
  job: Job,
  started: Started['started'],
  { passedOn, landing, caller }: Settling,
  answer?: WholeAnswer,
): Promise<PaymentAnswer | JobRefusal> {
  // while its settlement is waited for it takes nothing from the budget
  request.charge.refund();
  const { digest, callId, state } = started;
  const { route } = request;
  const lease = route && !state.answered ? firstLease(context, job, route.config) : undefined;
  const settled = await settlePayment(context, started, { client: request.client, passedOn, landing, lease });
  switch (settled.kind) {
    case 'settled': {
      const { serviceId, jobIndex } = job;
      const atoms = movedAtoms(state, settled.proof);
      // its receipt shows the refund that is due
      if (isTooMuch(state, atoms)) return refusal(request, 'payment_recovered', { digest });
      const { transaction } = settled;
      const payment = paymentSummary(paymentToData(state.payment), { amount: String(atoms), transaction });
      const { x402Version } = state.payment;
      return acceptedAnswer(
        context,
        {
          digest,
          job: { serviceId, jobIndex },
          callId,
          payment,
          x402Version,
          replayed: false,
          answer,
          lease: settled.lease && leasedByRequest(request, job, started, settled.lease, caller?.address),
        },
        { settledAt: settled.at, isRefunded: false },
      );
    }
    case 'failed':
    case 'void':
      // nothing was broadcast, and the chain agrees: the payer may sign another
      return offerRefusal(job, 'payment_invalid', settled.reason);
    case 'unknown':
      return { kind: 'pending', digest, replayed: false };
    case 'superseded':
      return answerOnRecord(context, job, started);
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
    case 'authorized':
    case 'settling':
    case 'settlement_unknown':
    case undefined:
      return { kind: 'pending', digest, replayed: false };
  }
}
