import { readTopUpOrder } from '../../base/values/top-up-order.ts';
import { ofPayment, paidCallKey, paymentToData } from '../../payments/rules/payment.ts';
import { jobKey } from '../../base/values/job.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { settleEndSecs, sharedAppendMs } from '../../payments/rules/payment-window.ts';
import { readSignedApproval, type SignedApproval } from '../../base/values/gas-sponsoring.ts';
import { approvalOf } from '../../payments/rules/approval.ts';
import { startedState } from '../../payments/rules/settlement.ts';
import { orderedUuid } from '../../base/values/ordered-uuid.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { AnyClaim, AppendOutcome, CallChange, LaneCommand } from '../../ledger/store/append-batch.ts';
import { nowSecs, type LedgerWriter } from '../../ledger/store/ledger.ts';
import { putBody } from '../../calls/store/calls.ts';
import { type AppendOptions, type Lane, LaneFullError } from '../../ledger/store/lane.ts';
import { callerNonceClaim, paymentClaim, paymentIdClaim, paymentKey } from '../../payments/store/claims.ts';
import { callOrder } from '../../calls/use-cases/call-order.ts';
import { keepCallback } from '../../calls/use-cases/callbacks.ts';
import type { Job } from './catalog.ts';
import type { CheckedPayment } from './check-payment.ts';
import type pg from 'pg';
import type { Config, JobsConfig } from '../../base/config/config.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { Facilitators } from '../../payments/peers/facilitator/facilitators.ts';
import type { BoundRequest } from './job-request.ts';
import { attemptSecs, isAnsweredFirst, startMarginSecs } from './routes/route-request.ts';
import {
  authPassed,
  callerNonceReplay,
  enqueueFailed,
  type JobRefusal,
  rejectedPayment,
  unrecordedRefusal,
} from './refusal.ts';
import type { StartedPayment } from '../../payments/use-cases/record-settlement.ts';

/** A larger body is stored before its append, which would otherwise delay the other commands of its batch. */
const smallBodyBytes = 8_192;
/** How long a settlement may take before the resolver looks for its outcome on the chain as well. */
export const firstLookMs = 5_000;

export interface StartPorts extends LedgerWriter {
  readonly config: Config;
  readonly settings: JobsConfig;
  readonly facilitators: Facilitators;
  readonly tracing?: Tracing | undefined;
}

export type PaymentStart =
  | {
      readonly kind: 'started';
      readonly started: StartedPayment & { readonly callId: number };
      readonly job: Job;
      readonly checked: CheckedPayment;
      /** Its upstream is asked first, until then (Unix seconds). */
      readonly askedUntil: number | undefined;
    }
  /** Another append moved the quote's stream first: everything has to be looked at again. */
  | { readonly kind: 'stream_moved'; readonly digest: Hex }
  | JobRefusal;

/** Until when its upstream is asked, in Unix seconds; undefined where it is settled first. One that has landed is charged already. */
function askedUntilOf(
  context: StartPorts,
  request: BoundRequest,
  { landing }: CheckedPayment,
): number | undefined {
  if (!isAnsweredFirst(request) || landing.kind === 'landed') return undefined;
  return nowSecs(context) + attemptSecs(request.route.config);
}

type AddedCall = Extract<CallChange, { op: 'add' }>;

/** Step 7: one append claims the payment and the quote, and stores all that is needed to finish the payment. */
export async function startPayment(
  context: StartPorts,
  request: BoundRequest,
  job: Job,
  checked: CheckedPayment,
): Promise<PaymentStart> {
  const { digest, payment, caller, settler } = checked;
  // one quote, one payment: whatever the checks before have let pass
  if (checked.state.payment) return { kind: 'stream_moved', digest };
  const kept = await keepRequest(context, request);
  const { callbackUrl, binding } = request;
  if (callbackUrl !== undefined)
    await keepCallback(context, callbackUrl, { stream: digest, binding }, payment.payer);
  const askedUntil = askedUntilOf(context, request, checked);
  const approval = signedApprovalOf(checked);
  const command = startCommand(context, request, job, checked, { kept, askedUntil, approval });
  const outcome = await append(context, command, {
    mayWaitMs: sharedAppendMs(context.facilitators.typicalSettleMs(settler)),
  });
  switch (outcome.outcome) {
    case 'ok': {
      if (outcome.call_id === null) throw new Error('the append of a call returned no call id');
      const { call_id: callId, version } = outcome;
      const status = askedUntil === undefined ? 'settling' : 'authorized';
      const state = startedState(payment, callId, { status, facilitator: settler.name, approval });
      const started = { digest, version, callId, state };
      return { kind: 'started', started, job, checked, askedUntil };
    }
    case 'full':
      return enqueueFailed(job, digest, 'lane_full');
    case 'lost':
      if (outcome.claim === 'caller_nonce' && caller?.nonce !== undefined)
        return callerNonceReplay(digest, payment, {
          job,
          caller: caller.address,
          nonce: caller.nonce,
          usedBy: outcome.stream,
        });
      // the append itself recorded the refusal of a used payment or id; a taken quote is looked at again
      if (!isReplayed(outcome.claim)) return { kind: 'stream_moved', digest };
      if (outcome.claim === 'payment' && checked.isUnread) return { kind: 'stream_moved', digest };
      return unrecordedRefusal(replayCodes[outcome.claim]);
    case 'request_refused':
      return rejectedPayment(job, { stage: 'match', reason: 'request_refused', quote_digest: digest });
    case 'same':
    case 'stale':
    case 'lease_lost':
      return { kind: 'stream_moved', digest };
  }
}

type KeptRequest = Pick<AddedCall, 'bodyId' | 'body' | 'traceparent'>;

/** What is known of a payment once it is about to be started. */
interface Start {
  readonly kept: KeptRequest;
  readonly askedUntil: number | undefined;
  readonly approval: SignedApproval | undefined;
}

/** The values of a request that are stored with its call. Stores a large body; a small one travels with the call's command. */
export async function keepRequest(
  { pool, tracing }: { readonly pool: pg.Pool; readonly tracing?: Tracing | undefined },
  { body, contentType }: Pick<BoundRequest, 'body' | 'contentType'>,
): Promise<KeptRequest> {
  const kept = { bodyId: orderedUuid(), traceparent: tracing?.traceparent() };
  if (body.length <= smallBodyBytes) return { ...kept, body: { contentType, bytes: body } };
  await putBody(pool, kept.bodyId, contentType, body);
  return kept;
}

/** What the event of a started payment, or of a redelivery, says about its request. */
export function requestFacts(request: BoundRequest, bodyKeccak256: Hex | undefined) {
  return {
    request_id: request.requestId,
    binding: request.binding,
    body_sha256: request.bodySha256,
    ...(bodyKeccak256 === undefined ? {} : { body_keccak256: bodyKeccak256 }),
    body_bytes: request.body.length,
  };
}

/** A lane whose queue is full cannot record the refusal either; the client still gets its answer. */
export async function append(
  context: { readonly lane: Lane },
  command: LaneCommand,
  options?: AppendOptions,
): Promise<AppendOutcome | { readonly outcome: 'full' }> {
  try {
    return await context.lane.append(command, options);
  } catch (error) {
    if (error instanceof LaneFullError) return { outcome: 'full' };
    throw error;
  }
}

const replayCodes = {
  payment: 'payment_replay',
  payment_id: 'payment_identifier_conflict',
  transfer: 'payment_replay',
} as const;

function isReplayed(kind: AnyClaim['kind']): kind is keyof typeof replayCodes {
  return kind in replayCodes;
}

/**
 * What a payment claims when it starts; the first claim that is lost decides the refusal. Its quote needs none: the version of the
 * quote's stream says that no other payment has taken it.
 */
function startClaims(
  request: BoundRequest,
  job: Job,
  { payment, paymentId, caller }: CheckedPayment,
  key: Hex,
): AnyClaim[] {
  const claims: AnyClaim[] = [paymentClaim(payment, request.binding)];
  if (caller?.nonce !== undefined) claims.push(callerNonceClaim(caller.address, job, caller.nonce));
  if (paymentId !== undefined)
    claims.push(paymentIdClaim(payment.payer, paymentId, `${key}/${request.binding}`));
  return claims;
}

/**
 * From when on the request would be refused, in Unix seconds. A start that waits for the ledger is not recorded after that: its payer may
 * have been told meanwhile, by any gateway, that the payment is refused. Undefined for a payment that has landed, which is never refused.
 */
function endOf(
  context: StartPorts,
  request: BoundRequest,
  { payment, termsEndAt, landing, caller, topUpOrder }: CheckedPayment,
): number | undefined {
  if (landing.kind === 'landed') return undefined;
  const settleEnd = settleEndSecs(payment.validBefore, startMarginSecs(context.settings, request));
  const orderEnd = topUpOrder === undefined ? undefined : readTopUpOrder(topUpOrder)?.expiresAt;
  return Math.min(termsEndAt, settleEnd, caller?.expiry ?? Infinity, orderEnd ?? Infinity);
}

function startCommand(
  context: StartPorts,
  request: BoundRequest,
  job: Job,
  checked: CheckedPayment,
  start: Start,
): LaneCommand {
  const { kept, askedUntil } = start;
  const { digest, state, payment, pricedAt, caller, paymentId, isUnread } = checked;
  const { serviceId, jobIndex } = job;
  const { network, asset, symbol } = payment;
  const key = paymentKey(payment);
  const replayDenied = (claim: 'payment' | 'payment_identifier'): LedgerEvent => {
    return { type: 'payment_replay_denied', data: { claim, ...ofPayment(payment), quote_digest: digest } };
  };
  return {
    stream: digest,
    expect: state.version,
    issuedAt: pricedAt,
    endsAt: endOf(context, request, checked),
    unlessRefused: checked.landing.kind === 'landed' ? undefined : request.copyKey,
    events: startEvents(request, checked, start),
    claims: startClaims(request, job, checked, key),
    lost: {
      stream: request.stream,
      // of the claims that it makes: each event is encoded for every payment. That of a nonce names its user, which this append finds
      events: {
        // the look-up says first whether it is this very request's
        ...(isUnread ? {} : { payment: [replayDenied('payment')] }),
        ...(paymentId !== undefined && { payment_id: [replayDenied('payment_identifier')] }),
      },
    },
    call: {
      op: 'add',
      serviceId,
      jobIndex,
      ...kept,
      network,
      asset,
      symbol,
      caller: caller?.address,
      // credit is sold without a runner
      order: job.isTopUp
        ? undefined
        : callOrder(context.settings.jobPolicies.get(jobKey(job)), request.headers ?? {}, caller?.address),
      payment: key,
      idempotencyKey: paidCallKey({ payment: key, job, bodySha256: request.bodySha256 }),
      delayMs: firstLookMs + (askedUntil === undefined ? 0 : 1_000 * (askedUntil - nowSecs(context))),
    },
  };
}

/** The payer's approval of Permit2 that the payment carries for its facilitator. */
function signedApprovalOf({
  payment,
  passedOn: { extensions = {} },
}: CheckedPayment): SignedApproval | undefined {
  if (payment.transferMethod === 'eip3009') return undefined;
  return readSignedApproval(extensions, approvalOf(payment));
}

function startEvents(
  request: BoundRequest,
  checked: CheckedPayment,
  { askedUntil, approval }: Pick<Start, 'askedUntil' | 'approval'>,
): LedgerEvent[] {
  const { payment, opening, verifiedBy, signedBy, caller, paymentId, bodyKeccak256, topUpOrder, settler } =
    checked;
  const verified = {
    ...ofPayment(payment),
    by: verifiedBy,
    ...(signedBy === 'contract' ? { signed_by: signedBy } : {}),
  };
  const events: LedgerEvent[] = [...opening, { type: 'payment_verified', data: verified }];
  if (caller) events.push(authPassed(caller));
  const data = {
    ...requestFacts(request, bodyKeccak256),
    payment: paymentToData(payment),
    ...(paymentId === undefined ? {} : { payment_id: paymentId }),
    ...(topUpOrder === undefined ? {} : { top_up_order: topUpOrder }),
    ...(askedUntil === undefined ? {} : { upstream: { ends_at: askedUntil } }),
    ...(settler.name === undefined ? {} : { facilitator: settler.name }),
    ...(approval && { approval }),
  };
  events.push({ type: 'settlement_started', data });
  return events;
}
