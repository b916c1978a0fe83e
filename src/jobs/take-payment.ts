import { randomUUID } from 'node:crypto';
import type { DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { ofPayment, paymentSummary, paymentToData, type SignedPayment } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { refusals } from '../domain/errors/refusal.ts';
import { foldQuote, paymentOf } from '../domain/payments/quote-state.ts';
import type { AppendOutcome, CallChange, Claim, LaneCommand } from '../store/append-batch.ts';
import { putBody } from '../store/calls.ts';
import type { KnownPayment } from '../store/payment-lookup.ts';
import { LaneFullError } from '../store/lane.ts';
import {
  callerNonceClaim,
  paymentClaim,
  paymentIdClaim,
  paymentKey,
  quoteClaim,
  readStream,
} from '../store/streams.ts';
import type { JobAnswer } from './answer.ts';
import type { Job } from './catalog.ts';
import { checkDecodedPayment, type CheckedPayment, type Objection } from './check-payment.ts';
import type { JobsContext } from './context.ts';
import type { BoundRequest } from './job-request.ts';
import { quoteJob } from './quote-job.ts';
import { acceptedAnswer, answerKnownPayment, lookUpPayment } from './known-payment.ts';
import { receiptToken } from './receipt.ts';
import { record, refuse, refuseReplay, rejectPayment, requestStream } from './refuse.ts';
import { settlePayment } from './settle-payment.ts';
import { recordOutcome, type Settlement, type StartedPayment } from './settlement-outcome.ts';

const retryAfterSecs = 5;
/** Up to here a body travels with its append; a larger one would hold up what is sent with it. */
const smallBodyBytes = 8_192;
/** How long a settlement may take before its outcome is looked for on the chain beside it. */
const firstLookMs = 5_000;
/** How often the stream of a quote may move under a payment before it is told that others are at it. */
const maxTries = 3;

/**
 * Steps 2 to 9 for a decoded payment. An objection is told only after a last look whether this very payment was started
 * meanwhile, by a twin of this request: its own settlement can be what speaks against it now (a used nonce, a quote in
 * use, a full outbox), and a payer who is told 402 signs again and pays twice.
 */
export async function takePayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  firstSighting: KnownPayment,
): Promise<JobAnswer> {
  let sighting = firstSighting;
  for (let tries = 1; ; tries++) {
    const checked = await checkDecodedPayment(context, request, job, decoded, sighting.quote);
    const answer = checked.kind === 'good' ? await start(context, request, job, checked) : undefined;
    if (answer) return answer;
    sighting = await lookUpPayment(context, decoded);
    const recalled = await answerKnownPayment(context, decoded, request.binding, sighting);
    if (recalled?.kind === 'replay') return refuseReplay(context, request, decoded);
    if (recalled?.kind === 'failed') {
      return rejectPayment(context, request, job, { stage: 'match', reason: recalled.reason });
    }
    if (recalled) return recalled;
    if (checked.kind !== 'good')
      return unlessStarted(context, request, decoded, await tell(context, request, job, checked));
    if (tries === maxTries) return refuse(context, request, 'quote_in_use', { quoteDigest: checked.digest });
  }
}

/** Writing a new quote takes its time: where a twin has started this very payment meanwhile, that answers, and no 402. */
async function unlessStarted(
  context: JobsContext,
  request: BoundRequest,
  decoded: DecodedPayment,
  told: JobAnswer,
): Promise<JobAnswer> {
  if (told.kind !== 'payment_required') return told;
  const sighting = await lookUpPayment(context, decoded);
  const recalled = await answerKnownPayment(context, decoded, request.binding, sighting);
  return recalled === undefined || recalled.kind === 'replay' || recalled.kind === 'failed' ? told : recalled;
}

type HeldCall = Extract<CallChange, { op: 'add' }>;

/** Records an objection and answers with it. */
async function tell(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  objection: Objection,
): Promise<JobAnswer> {
  switch (objection.kind) {
    case 'rejected':
      return rejectPayment(context, request, job, objection.why, objection.code);
    case 'quote_in_use':
      return refuse(context, request, 'quote_in_use', { quoteDigest: objection.digest });
    case 'unidentified':
      return refuse(context, request, objection.code);
    case 'facilitator_unavailable':
      return refuse(context, request, 'facilitator_unavailable', {
        quoteDigest: objection.digest,
        retryAfterSecs,
      });
    case 'denied':
      return deny(context, request, job, objection);
    case 'nonce_used':
      await record(context, request, replayDenied('caller_nonce', objection.digest, objection.payment));
      return { kind: 'refused', code: 'signature_replay' };
    case 'rate_limited':
      return { kind: 'refused', code: 'rate_limited', retryAfterSecs: objection.retryAfterSecs };
    case 'no_room': {
      const { reason, digest } = objection;
      const data = { reason, service_id: job.serviceId, job_index: job.jobIndex, quote_digest: digest };
      await record(context, request, { type: 'enqueue_failed', data });
      return { kind: 'refused', code: 'enqueue_failed', retryAfterSecs };
    }
  }
}

/**
 * A caller who may not call. It stands in the quote's own story where a verified payment names that quote and nothing
 * else has happened to it; otherwise in the request's: a story that moves on is not written into.
 */
async function deny(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  { code, digest, caller, version }: Extract<Objection, { kind: 'denied' }>,
): Promise<JobAnswer> {
  if (refusals[code].status >= 500) {
    return refuse(context, request, code, { quoteDigest: digest, retryAfterSecs });
  }
  const { serviceId: service_id, jobIndex: job_index } = job;
  const data = { code, service_id, job_index, ...(caller ? { caller } : {}), quote_digest: digest };
  const event: LedgerEvent = { type: 'auth_denied', data };
  const isWritten =
    version !== undefined &&
    (await context.lane.append({ stream: digest, expect: version, events: [event] })).outcome === 'ok';
  if (!isWritten) await record(context, request, event);
  return { kind: 'refused', code };
}

/**
 * Step 7: one append claims the payment and the quote, and keeps all that is needed to finish; then it is finished.
 * Undefined where somebody moved the quote's stream first, so that everything has to be looked at again.
 */
async function start(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  checked: CheckedPayment,
): Promise<JobAnswer | undefined> {
  const { digest, payment } = checked;
  const bodyId = randomUUID();
  const isSmall = request.body.length <= smallBodyBytes;
  if (!isSmall) await putBody(context.pool, bodyId, request.contentType, request.body);
  const body = isSmall ? { contentType: request.contentType, bytes: request.body } : undefined;
  const command = startCommand(request, job, checked, { bodyId, body });
  const outcome = await append(context, command);
  if (outcome === 'full') return { kind: 'refused', code: 'enqueue_failed', retryAfterSecs };
  switch (outcome.outcome) {
    case 'ok': {
      if (outcome.call_id === null) throw new Error('a held call without an id');
      const { call_id: callId, version } = outcome;
      const answer = await finish(context, job, { digest, payment, callId, version }, checked.landed);
      // what was started is no refusal any more, so it costs nobody's budget; what failed keeps a call waiting, and does
      if (answer.kind !== 'payment_required') request.askers.length = 0;
      return answer;
    }
    case 'lost':
      // the refusal of a used payment or nonce was recorded by the append itself; a taken quote is looked at again
      return outcome.claim === 'quote' || outcome.claim === 'spend_auth'
        ? undefined
        : { kind: 'refused', code: replayCodes[outcome.claim] };
    case 'same':
    case 'stale':
    case 'lease_lost':
      return undefined;
  }
}

/** A lane without room cannot write down that it has none: the client is told all the same. */
async function append(context: JobsContext, command: LaneCommand): Promise<AppendOutcome | 'full'> {
  try {
    return await context.lane.append(command);
  } catch (error) {
    if (error instanceof LaneFullError) return 'full';
    throw error;
  }
}

const replayCodes = {
  payment: 'payment_replay',
  caller_nonce: 'signature_replay',
  payment_id: 'payment_identifier_conflict',
  transfer: 'payment_replay',
} as const;

/** What a payment takes for itself when it starts, in the order in which a loser is told. */
function startClaims(request: BoundRequest, job: Job, checked: CheckedPayment): Claim[] {
  const { digest, payment, paymentId, caller } = checked;
  const quote = quoteClaim(digest, payment);
  const claims = [paymentClaim(payment, request.binding), quote];
  if (caller?.nonce !== undefined)
    claims.push(callerNonceClaim(caller.address, job, caller.nonce, quote.binding));
  if (paymentId !== undefined)
    claims.push(paymentIdClaim(payment.payer, paymentId, `${quote.binding}/${request.binding}`));
  return claims;
}

function startCommand(
  request: BoundRequest,
  job: Job,
  checked: CheckedPayment,
  stored: Pick<HeldCall, 'bodyId' | 'body'>,
): LaneCommand {
  const { digest, story, payment, caller } = checked;
  const { serviceId, jobIndex } = job;
  const { network, symbol } = payment;
  return {
    stream: digest,
    expect: story.version,
    events: startEvents(request, checked),
    claims: startClaims(request, job, checked),
    lost: {
      stream: requestStream(request),
      events: {
        payment: [replayDenied('payment', digest, payment)],
        caller_nonce: [replayDenied('caller_nonce', digest, payment)],
        payment_id: [replayDenied('payment_identifier', digest, payment)],
      },
    },
    call: {
      op: 'add',
      serviceId,
      jobIndex,
      ...stored,
      network,
      symbol,
      caller: caller?.address,
      payment: paymentKey(payment),
      delayMs: firstLookMs,
    },
  };
}

function startEvents(
  request: BoundRequest,
  { payment, opening, verifiedBy, caller, paymentId }: CheckedPayment,
): LedgerEvent[] {
  const verified = { ...ofPayment(payment), by: verifiedBy };
  const events: LedgerEvent[] = [...opening, { type: 'payment_verified', data: verified }];
  if (caller) {
    const { mode, address, nonce } = caller;
    const data = { caller: address, mode, ...(nonce === undefined ? {} : { caller_nonce: nonce }) };
    events.push({ type: 'auth_passed', data });
  }
  const data = {
    request_id: request.requestId,
    binding: request.binding,
    body_sha256: request.bodySha256,
    body_bytes: request.body.length,
    payment: paymentToData(payment),
    ...(paymentId === undefined ? {} : { payment_id: paymentId }),
  };
  events.push({ type: 'settlement_started', data });
  return events;
}

function replayDenied(
  claim: 'payment' | 'caller_nonce' | 'payment_identifier',
  digest: Hex,
  payment: SignedPayment,
): LedgerEvent {
  return { type: 'replay_denied', data: { claim, ...ofPayment(payment), quote_digest: digest } };
}

/** Steps 7 to 9 once `settlement_started` is on record. Whatever goes wrong now is pending, never a failure. */
async function finish(
  context: JobsContext,
  job: Job,
  started: StartedPayment & { readonly callId: number },
  landed: Settlement | undefined,
): Promise<JobAnswer> {
  const { digest } = started;
  const pending: JobAnswer = { kind: 'pending', digest, replayed: false };
  const settling = landed ? recordOutcome(context, started, landed) : settlePayment(context, started);
  context.settling.set(
    digest,
    settling.catch(() => {}),
  );
  try {
    const settled = await settling;
    if (settled.kind === 'settled') return accepted(context, job, started, settled.transaction);
    // it failed before anything was broadcast, and the chain agrees: the payer may sign another
    if (settled.kind === 'failed' || settled.kind === 'void')
      return await quoteJob(context, job, 'payment_invalid', settled.reason);
    return settled.kind === 'unknown' ? pending : await answerOnRecord(context, job, started);
  } catch (error) {
    context.log.error({ quote_digest: digest, err: error }, 'a started payment could not be finished here');
    return pending;
  } finally {
    context.settling.delete(digest);
  }
}

/** The 202 of a payment that this very request settled. */
function accepted(
  context: JobsContext,
  job: Job,
  started: StartedPayment & { readonly callId: number },
  transaction: string,
): JobAnswer {
  const { digest, payment, callId } = started;
  return {
    kind: 'accepted',
    digest,
    job: { serviceId: job.serviceId, jobIndex: job.jobIndex },
    callId,
    payment: paymentSummary(paymentToData(payment), transaction),
    x402Version: payment.x402Version,
    receiptToken: receiptToken(context.receiptKey, digest),
    replayed: false,
  };
}

/** The answer of a payment whose outcome somebody else recorded first. */
async function answerOnRecord(
  context: JobsContext,
  job: Job,
  { digest, payment }: StartedPayment,
): Promise<JobAnswer> {
  const story = foldQuote((await readStream(context.pool, digest)).events);
  const known = paymentOf(story, payment);
  switch (known?.status) {
    case 'settled':
      return acceptedAnswer(context, digest, story, known, { replayed: false, showsQuote: true });
    case 'settlement_failed':
      return quoteJob(context, job, 'payment_invalid', known.reason);
    case 'settling':
    case 'settlement_unknown':
    case undefined:
      return { kind: 'pending', digest, replayed: false };
  }
}
