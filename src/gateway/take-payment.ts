import { randomUUID } from 'node:crypto';
import {
  checkPayment,
  type DecodedPayment,
  matchOption,
  paymentToData,
  type SignedPayment,
  timeError,
} from '../domain/payment.ts';
import type { Hex } from '../domain/primitives.ts';
import { optionFromJson } from '../domain/quote.ts';
import { foldStory, isOpen, paymentOf, type Story } from '../domain/story.ts';
import { facilitatorRequest } from '../domain/x402.ts';
import type { AppendOutcome, LaneCommand } from '../store/append-batch.ts';
import { putBody } from '../store/calls.ts';
import { LaneFullError } from '../store/lane.ts';
import { paymentClaim, readStream } from '../store/streams.ts';
import type { JobAnswer, Refused } from './answer.ts';
import { payerAsker } from './budget.ts';
import type { Job } from './catalog.ts';
import { type Gateway, nowSecs } from './gateway.ts';
import type { BoundRequest } from './job-request.ts';
import { quoteJob } from './quote-job.ts';
import { acceptedAnswer, recallPayment } from './recall-payment.ts';
import { record, refuse, rejectPayment, requestStream } from './refuse.ts';
import { quoteClaim, settlePayment, type StartedPayment } from './settle-payment.ts';

/** The facilitator refuses what expires within this; settling may start no later. */
const facilitatorMarginSecs = 6;
const retryAfterSecs = 5;

/** A payment that passed every check that needs no claim: it can be started. */
interface CheckedPayment {
  readonly digest: Hex;
  readonly story: Story;
  readonly payment: SignedPayment;
}

/** Steps 2 to 9 for a decoded payment that was never seen before. */
export async function takePayment(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  triesLeft = 3,
): Promise<JobAnswer> {
  const checked = await checkAgainstQuote(gateway, request, job, decoded);
  if (checked === 'known') return askAgain(gateway, request, job, decoded, triesLeft);
  if ('kind' in checked) return checked;
  const unverified = await verify(gateway, request, job, checked);
  if (unverified) return unverified;
  request.askers.push(payerAsker(checked.payment.payer));
  const retrySecs = gateway.budget.spent(request.askers);
  if (retrySecs !== undefined) return { kind: 'refused', code: 'rate_limited', retryAfterSecs: retrySecs };
  if (!hasRoom(gateway)) return refuseForRoom(gateway, request, job, checked.digest);
  return start(gateway, request, job, decoded, checked, triesLeft);
}

/** Steps 2 and 3: the quote it names, the option it means, and its own spelling. Asks nobody but the ledger. */
async function checkAgainstQuote(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
): Promise<CheckedPayment | JobAnswer | 'known'> {
  const digest = decoded.quoteDigest;
  if (digest === undefined)
    return rejectPayment(gateway, request, job, { stage: 'match', reason: 'names_no_quote' });
  const named = { quote_digest: digest };
  const { events, nowSecs: readAt } = await readStream(gateway.db, digest);
  const story = foldStory(events);
  const { quote } = story;
  if (!quote || quote.service_id !== job.serviceId || quote.job_index !== job.jobIndex) {
    return rejectPayment(gateway, request, job, { stage: 'match', reason: 'unknown_quote', ...named });
  }
  const option = matchOption(decoded, quote.options.map(optionFromJson));
  if (!option)
    return rejectPayment(gateway, request, job, { stage: 'match', reason: 'matches_no_option', ...named });
  // the same payment in another request, which was faster by a moment
  if (paymentOf(story, decoded.fingerprint.payer, decoded.fingerprint.nonce)) return 'known';
  if (!isOpen(story, readAt)) {
    if (quote.expires_at > readAt) return refuse(gateway, request, 'quote_in_use', { quoteDigest: digest });
    const why = { stage: 'match', reason: 'quote_expired', ...named } as const;
    return rejectPayment(gateway, request, job, why, 'quote_expired');
  }
  const payment = checkPayment(decoded, option, paymentWindow(gateway, readAt));
  return 'invalid' in payment
    ? rejectPayment(gateway, request, job, { stage: 'shape', reason: payment.invalid, ...named })
    : { digest, story, payment };
}

function paymentWindow(gateway: Gateway, atSecs: number) {
  const { maxTimeoutSecs, facilitator } = gateway.x402;
  const settleMarginSecs = facilitatorMarginSecs + Math.ceil(facilitator.settleTimeoutMs / 1_000);
  return { nowSecs: atSecs, maxTimeoutSecs, settleMarginSecs };
}

/** Step 4. Undefined where the payment may go on. */
async function verify(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  { digest, payment }: CheckedPayment,
): Promise<JobAnswer | undefined> {
  if (!gateway.x402.facilitator.verify) return undefined;
  const answer = await gateway.facilitator.verify(facilitatorRequest(payment, digest));
  const named = { quote_digest: digest, payer: payment.payer };
  if (answer.kind === 'invalid') {
    return rejectPayment(gateway, request, job, { stage: 'verify', reason: answer.reason, ...named });
  }
  const lies = answer.kind === 'valid' && answer.payer !== undefined && answer.payer !== payment.payer;
  if (answer.kind === 'valid' && !lies) return undefined;
  const cause = answer.kind === 'unavailable' ? answer.cause : 'payer_mismatch';
  gateway.log.warn({ quote_digest: digest, cause }, 'the facilitator gave no usable answer to verify');
  return refuse(gateway, request, 'facilitator_unavailable', { quoteDigest: digest, retryAfterSecs });
}

/** Step 6. */
function hasRoom(gateway: Gateway): boolean {
  return !gateway.stopping() && gateway.lane.state.openCalls < gateway.config.limits.maxOutstandingCalls;
}

async function refuseForRoom(
  gateway: Gateway,
  request: BoundRequest,
  { serviceId, jobIndex }: Job,
  digest: Hex,
): Promise<Refused> {
  const reason = gateway.stopping() ? 'stopping' : 'outbox_full';
  const data = { reason, service_id: serviceId, job_index: jobIndex, quote_digest: digest };
  await record(gateway, request, { type: 'enqueue_failed', data });
  return { kind: 'refused', code: 'enqueue_failed', retryAfterSecs };
}

/** Step 7: one append claims the payment and the quote, and keeps all that is needed to finish. */
async function start(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  checked: CheckedPayment,
  triesLeft: number,
): Promise<JobAnswer> {
  const { digest, payment } = checked;
  const late = timeError(payment.validAfter, payment.validBefore, paymentWindow(gateway, nowSecs(gateway)));
  if (late)
    return rejectPayment(gateway, request, job, { stage: 'shape', reason: late, quote_digest: digest });
  const bodyId = randomUUID();
  await putBody(gateway.pool, bodyId, request.contentType, request.body);
  const outcome = await append(gateway, startCommand(gateway, request, job, checked, bodyId));
  if (outcome === 'full') return { kind: 'refused', code: 'enqueue_failed', retryAfterSecs };
  switch (outcome.outcome) {
    case 'ok': {
      if (outcome.call_id === null) throw new Error('a held call without an id');
      // from here on it is no refusal any more, so it costs nobody's budget
      request.askers.length = 0;
      return finish(gateway, job, { digest, payment, callId: outcome.call_id, version: outcome.version });
    }
    case 'lost':
      return outcome.claim === 'payment'
        ? { kind: 'refused', code: 'payment_replay' }
        : refuse(gateway, request, 'quote_in_use', { quoteDigest: digest });
    case 'same':
    case 'stale':
    case 'lease_lost':
      return askAgain(gateway, request, job, decoded, triesLeft);
  }
}

/** A lane without room cannot write down that it has none: the client is told all the same. */
async function append(gateway: Gateway, command: LaneCommand): Promise<AppendOutcome | 'full'> {
  try {
    return await gateway.lane.append(command);
  } catch (error) {
    if (error instanceof LaneFullError) return 'full';
    throw error;
  }
}

function startCommand(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  { digest, story, payment }: CheckedPayment,
  bodyId: string,
): LaneCommand {
  const verifiedBy = gateway.x402.facilitator.verify ? 'facilitator' : 'settlement';
  const ofPayment = { payment_nonce: payment.nonce, payer: payment.payer };
  return {
    stream: digest,
    expect: story.version,
    events: [
      { type: 'payment_verified', data: { ...ofPayment, by: verifiedBy } },
      {
        type: 'settlement_started',
        data: {
          request_id: request.requestId,
          binding: request.binding,
          body_sha256: request.bodySha256,
          body_bytes: request.body.length,
          payment: paymentToData(payment),
        },
      },
    ],
    claims: [paymentClaim(payment, request.binding), quoteClaim(digest, payment)],
    lost: {
      stream: requestStream(request),
      events: {
        payment: [{ type: 'replay_denied', data: { claim: 'payment', ...ofPayment, quote_digest: digest } }],
      },
    },
    call: {
      op: 'hold',
      serviceId: job.serviceId,
      jobIndex: job.jobIndex,
      bodyId,
      network: payment.network,
      symbol: payment.symbol,
      caller: undefined,
    },
  };
}

/** Somebody moved the stream first: this very payment in another request, or something else about the same quote. */
async function askAgain(
  gateway: Gateway,
  request: BoundRequest,
  job: Job,
  decoded: DecodedPayment,
  triesLeft: number,
): Promise<JobAnswer> {
  const recalled = await recallPayment(gateway, decoded, request.binding);
  if (!recalled) {
    return triesLeft > 0
      ? takePayment(gateway, request, job, decoded, triesLeft - 1)
      : refuse(gateway, request, 'quote_in_use', { quoteDigest: decoded.quoteDigest });
  }
  if (recalled.kind === 'replay') return { kind: 'refused', code: 'payment_replay' };
  if (recalled.kind !== 'failed') return recalled;
  return rejectPayment(gateway, request, job, { stage: 'match', reason: recalled.reason });
}

/** Steps 7 to 9 once `settlement_started` is on record. Whatever goes wrong now is pending, never a failure. */
async function finish(gateway: Gateway, job: Job, started: StartedPayment): Promise<JobAnswer> {
  const { digest, payment } = started;
  const pending: JobAnswer = { kind: 'pending', digest, replayed: false };
  const settling = settlePayment(gateway, started);
  gateway.settling.set(
    digest,
    settling.catch(() => {}),
  );
  try {
    await settling;
    const story = foldStory((await readStream(gateway.db, digest)).events);
    const known = paymentOf(story, payment.payer, payment.nonce);
    if (known?.status === 'settled') {
      return acceptedAnswer(gateway, digest, story, known, { replayed: false, showsQuote: true });
    }
    // it failed before anything was broadcast, and the chain agrees: the payer may sign another
    if (known?.status === 'settlement_failed')
      return await quoteJob(gateway, job, 'payment_invalid', known.reason);
    return pending;
  } catch (error) {
    gateway.log.error({ quote_digest: digest, err: error }, 'a started payment could not be finished here');
    return pending;
  } finally {
    gateway.settling.delete(digest);
  }
}
