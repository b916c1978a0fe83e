import type { DeliveryConfig } from '../../base/config/plain-tables.ts';
import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { jobKey } from '../../base/values/job.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { writeResultHead } from '../../base/values/answer-price.ts';
import { isTriggeredStream } from '../../base/values/triggers/trigger.ts';
import { backOffMs, withJitterMs } from '../../base/values/back-off.ts';
import type { CallChange } from '../../ledger/store/append-batch.ts';
import { type CallLease, type LeasedCall, readRefusals, readResult } from '../store/calls.ts';
import { putResult } from '../store/put-result.ts';
import { putStoredResult, type StoredResult } from '../store/result-uploads.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Config } from '../../base/config/config.ts';
import { type Ledger, nowSecs } from '../../ledger/store/ledger.ts';
import { runIn, type StepEnd, type Tracing } from '../../base/values/tracing.ts';
import type { FailureRuns } from './failure-runs.ts';

type EndedAttempt =
  | Extract<CallChange, { readonly op: 'dead_letter' | 'retry' | 'return_lease' }>
  | { readonly op: 'complete'; readonly callId: number; readonly leaseId: string };

export interface AttemptPorts extends Ledger {
  readonly config: Config;
  /** Called when a call was released, so that the relays need not wait for their next poll. */
  readonly onCallReleased: () => void;
  readonly failureRuns: FailureRuns;
}

export interface LoggedPorts extends AttemptPorts {
  readonly log: OperatorLog;
}

interface Setback {
  readonly reason: string;
  readonly retryAfterMs?: number;
  readonly error?: string;
}

/** The outcome of one attempt. Reasons are machine-readable codes; `error` is the runner's text, for the operator. */
export type AttemptOutcome =
  | {
      readonly kind: 'completed';
      readonly contentType?: string | undefined;
      readonly result: Buffer;
      readonly resultOmitted: boolean;
      /** The result is in the result store; `result` is empty. */
      readonly stored?: StoredResult | undefined;
      /** Of a route. */
      readonly answer?: RouteAnswer | undefined;
      /** What the runner says that it costs: kept beside the result, and read where a route sells it. */
      readonly price?: string | undefined;
    }
  | ({ readonly kind: 'retry' } & Setback)
  /** The runner had no room for the call. */
  | ({ readonly kind: 'busy' } & Setback)
  | { readonly kind: 'dead'; readonly reason: string; readonly error?: string }
  /** The runner disconnected before it got the call. */
  | { readonly kind: 'runner_left' }
  /** The broker did not take the call, or no runner took it there. */
  | { readonly kind: 'not_taken'; readonly error?: string };

/** What an upstream answered to a route's call. */
export interface RouteAnswer {
  readonly status: number;
  /** Status and headers, as they are stored beside the body. */
  readonly head: string;
  /** Its body was passed on and is not stored: `result` is empty. */
  readonly passedOn: StoredResult | undefined;
}

/** The lease is the fencing token: if it was lost meanwhile, nothing is recorded. */
export type LeaseResult =
  | {
      readonly kind: 'recorded';
      /** Why the call is a dead letter now; undefined if it is not one. */
      readonly deadReason: string | undefined;
    }
  | { readonly kind: 'lease_lost' };

export interface Attempt {
  /** The ledger has no `delivered` of this attempt yet. */
  readonly isFirstNews: boolean;
  /** The runner's name; undefined for a call that sells credit. */
  readonly runner: string | undefined;
}

/** The reason of a dead letter that has used all its attempts. */
const exhausted = 'attempts_exhausted';
/** The reason of a dead letter whose call did not end within `max_call_age_secs`. */
export const tooOld = 'call_too_old';

/** Records one attempt and moves its call, in one append. */
export async function recordAttempt(
  context: AttemptPorts,
  call: CallLease,
  outcome: AttemptOutcome,
  { isFirstNews, runner }: Attempt,
): Promise<LeaseResult> {
  const step = attemptStep(context, call, await placeOutcome(context, call, outcome), isFirstNews);
  const change = step.call.op === 'complete' ? step.call : { ...step.call, runner };
  const { events } = step;
  const command = { stream: call.stream, events, call: change };
  const recorded = await context.lane.append(command, { urgent: true });
  if (recorded.outcome !== 'ok') return { kind: 'lease_lost' };
  if (runner !== undefined) noteOutcome(context.failureRuns, runner, outcome);
  if (step.call.op === 'retry') context.onCallReleased();
  return { kind: 'recorded', deadReason: step.call.op === 'dead_letter' ? step.call.reason : undefined };
}

/** A runner that is busy, or has left, has neither failed nor done its work; one that refuses a call has read it. */
function noteOutcome(runs: FailureRuns, runner: string, outcome: AttemptOutcome): void {
  if (outcome.kind === 'retry') runs.noteFailure(runner, outcome.reason);
  else if (outcome.kind === 'completed' || outcome.kind === 'dead') runs.noteSuccess(runner);
}

/** The same, and logs what became of it. */
export async function endAttempt(
  context: LoggedPorts,
  call: CallLease,
  outcome: AttemptOutcome,
  attempt: Attempt,
): Promise<LeaseResult> {
  const recorded = await recordAttempt(context, call, outcome, attempt);
  logAttempt(context.log, call, outcome, attempt.runner, recorded);
  return recorded;
}

/** Logs what became of an attempt; a dead letter with what the operator needs to know about it. */
export function logAttempt(
  log: OperatorLog,
  call: CallLease,
  outcome: AttemptOutcome,
  runner: string | undefined,
  recorded: LeaseResult,
): void {
  const { stream, callId, attempt } = call;
  const isTriggered = isTriggeredStream(stream);
  const facts = {
    ...(isTriggered ? { stream } : { quote_digest: stream }),
    call_id: callId,
    attempt,
    runner,
  };
  if (recorded.kind === 'lease_lost')
    return log.warn(facts, 'lease lost: the attempt of its new holder counts');
  if (outcome.kind === 'completed') return log.info(facts, 'call completed');
  const { reason, error } = { reason: outcome.kind, error: undefined, ...outcome };
  if (recorded.deadReason === undefined)
    return log.warn({ ...facts, reason, error }, 'call not delivered: it is delivered again');
  const dead = { ...facts, reason: recorded.deadReason, error };
  if (isTriggered) log.error(dead, 'dead letter: the call of a trigger is not delivered any more');
  else log.error(dead, 'dead letter: the call is not delivered any more, and its refund is due');
}

/** How often a call is tried: as the policy of its job says, else as often as all are. */
function maxAttemptsOf({ config }: AttemptPorts, { serviceId, jobIndex }: CallLease): number {
  const isJob = serviceId !== undefined && jobIndex !== undefined;
  const policy = isJob ? config.jobs?.jobPolicies.get(jobKey({ serviceId, jobIndex })) : undefined;
  return policy?.maxAttempts ?? config.delivery.maxAttempts;
}

/** Whether a failure of this attempt makes its call a dead letter. */
export function isLastAttempt(context: AttemptPorts, call: CallLease): boolean {
  return call.failures + 1 >= maxAttemptsOf(context, call);
}

/** Whether a call has used all its attempts, so that it is dead-lettered instead of delivered again. */
export function isExhausted(context: AttemptPorts, call: CallLease): boolean {
  return call.failures >= maxAttemptsOf(context, call);
}

/** Why a call that was just leased cannot be delivered; undefined if it can. */
export function undeliverable(context: AttemptPorts, call: LeasedCall) {
  // an attempt that fails for the last time is recorded as final immediately: this one was never reported
  const silent = 'the last lease ended without an outcome';
  if (isExhausted(context, call)) return { kind: 'dead', reason: exhausted, error: silent } as const;
  const missing = 'the stored body is missing';
  return call.body ? undefined : ({ kind: 'dead', reason: 'body_missing', error: missing } as const);
}

/** The events of one attempt, and the change of its call. */
function attemptStep(
  context: AttemptPorts,
  call: CallLease,
  outcome: PlacedOutcome,
  isFirstNews: boolean,
): { events: LedgerEvent[]; call: EndedAttempt } {
  const { callId, leaseId } = call;
  const attempt = { call_id: callId, attempt: call.attempt };
  switch (outcome.kind) {
    case 'completed': {
      const completed: LedgerEvent = { type: 'completed', data: { ...attempt, ...outcome.facts } };
      const events: LedgerEvent[] = isFirstNews
        ? [{ type: 'delivered', data: attempt }, completed]
        : [completed];
      return { events, call: { op: 'complete', callId, leaseId } };
    }
    case 'dead': {
      const { reason, error } = outcome;
      const events: LedgerEvent[] = [{ type: 'dead_lettered', data: { ...attempt, reason } }];
      return { events, call: { op: 'dead_letter', callId, leaseId, reason, error } };
    }
    case 'runner_left':
    case 'not_taken':
      // it costs the call no attempt
      return failedStep(context, call, { reason: outcome.kind }, 'return_lease', 0);
    case 'busy': {
      const delayMs = busyPauseMs(outcome, outcome.refusals, Math.random());
      return failedStep(context, call, outcome, 'return_lease', delayMs);
    }
    case 'retry': {
      if (call.failures + 1 >= maxAttemptsOf(context, call)) return exhaustedStep(call, outcome);
      const waitMs = retryDelayMs(context.config.delivery, call.failures, Math.random());
      return failedStep(context, call, outcome, 'retry', Math.max(outcome.retryAfterMs ?? 0, waitMs));
    }
  }
}

/** An outcome, with what it depends on of the call's history. */
type PlacedOutcome =
  | Exclude<AttemptOutcome, { kind: 'busy' | 'completed' }>
  | (Extract<AttemptOutcome, { kind: 'busy' }> & { readonly refusals: number })
  | { readonly kind: 'completed'; readonly facts: ResultFacts };

type ResultFacts = Omit<EventData<'completed'>, 'call_id' | 'attempt'>;

async function placeOutcome(
  context: AttemptPorts,
  call: CallLease,
  outcome: AttemptOutcome,
): Promise<PlacedOutcome> {
  if (outcome.kind === 'completed')
    return { kind: 'completed', facts: await keepResult(context, call, outcome) };
  if (outcome.kind !== 'busy') return outcome;
  // bounded: a call whose runner is always busy becomes a dead letter some day, so each refusal is a failure at last
  const refusals = await readRefusals(context.db, call.callId);
  return refusals < maxAttemptsOf(context, call) ? { ...outcome, refusals } : { ...outcome, kind: 'retry' };
}

/** Stores a result; the facts are those of the first one of its lease, which is kept. */
async function keepResult(
  { pool, db }: AttemptPorts,
  call: CallLease,
  {
    resultOmitted,
    stored,
    result,
    contentType,
    answer,
    price,
  }: Extract<AttemptOutcome, { kind: 'completed' }>,
): Promise<ResultFacts> {
  if (resultOmitted) return {};
  const isPriced = price !== undefined && isTriggeredStream(call.stream);
  const head = isPriced ? writeResultHead(price) : answer?.head;
  const answeredWith = (kept: string | undefined) => ({
    ...(answer && { http_status: answer.status }),
    ...(kept !== undefined && { head_sha256: sha256(kept) }),
  });
  if (answer?.passedOn) {
    const { sha256: result_sha256, bytes: result_bytes } = answer.passedOn;
    return { result_sha256, result_bytes, ...answeredWith(head) };
  }
  const own = stored ?? { sha256: sha256(result), bytes: result.length };
  const before = stored
    ? await putStoredResult(pool, call, contentType, stored, head)
    : await putResult(pool, call, contentType, result, head);
  const kept = before ?? own;
  const keptHead = before ? (await readResult(db, call.callId, call.attempt))?.head : head;
  return { result_sha256: kept.sha256, result_bytes: kept.bytes, ...answeredWith(keptHead) };
}

const busyBackOff = { firstMs: 1_000, longestMs: 30_000 };

/**
 * How long a runner that was busy gets no more calls, and the call that it refused waits: as long as it asked for, or longer each time.
 * @param refusals before this one
 * @param random from 0 to below 1
 */
export function busyPauseMs(
  { retryAfterMs = 0 }: { readonly retryAfterMs?: number },
  refusals: number,
  random: number,
): number {
  return Math.max(retryAfterMs, Math.round(withJitterMs(backOffMs(busyBackOff, refusals), random, 0.5)));
}

function exhaustedStep(call: CallLease, { reason, error }: { reason: string; error?: string }) {
  const { callId, leaseId } = call;
  const attempt = { call_id: callId, attempt: call.attempt };
  const events: LedgerEvent[] = [
    { type: 'delivery_failed', data: { ...attempt, reason } },
    { type: 'dead_lettered', data: { ...attempt, reason: exhausted } },
  ];
  return { events, call: { op: 'dead_letter', callId, leaseId, reason: exhausted, error } as const };
}

function failedStep(
  context: AttemptPorts,
  call: CallLease,
  { reason, error }: { reason: string; error?: string },
  op: 'retry' | 'return_lease',
  delayMs: number,
) {
  const { callId, leaseId, attempt } = call;
  const data: EventData<'delivery_failed'> = {
    call_id: callId,
    attempt,
    reason,
    retry_at: nowSecs(context) + Math.ceil(delayMs / 1_000),
  };
  const events: LedgerEvent[] = [{ type: 'delivery_failed', data }];
  return { events, call: { op, callId, leaseId, delayMs, reason, error } as const };
}

/**
 * Half of the wait is random, so that calls that failed together are not retried together, and a runner's absence of a known length
 * loses none.
 * @param failures of the call before this one
 * @param random from 0 to below 1
 */
export function retryDelayMs(
  { backoffBaseMs, backoffCapMs }: Pick<DeliveryConfig, 'backoffBaseMs' | 'backoffCapMs'>,
  failures: number,
  random: number,
): number {
  const firstMs = Math.min(backoffBaseMs, backoffCapMs);
  const waitMs = backOffMs({ firstMs, longestMs: backoffCapMs }, failures);
  return Math.round(withJitterMs(waitMs, random, 0.5));
}

/**
 * An attempt to deliver a call, as a span: the first one in the trace of the request that bought the call, each later one in a trace of
 * its own with a link to that request. `work` gets the call with the attempt's own span, for its runner.
 */
export function traceAttempt<T>(
  tracing: Tracing | undefined,
  runner: string,
  call: LeasedCall,
  work: (call: LeasedCall) => Promise<T>,
  endOf: (result: T) => StepEnd,
): Promise<T> {
  if (!tracing) return work(call);
  const attributes = {
    'tollbook.call_id': call.callId,
    'tollbook.service_id': call.serviceId,
    'tollbook.job_index': call.jobIndex,
    'tollbook.attempt': call.attempt,
    'tollbook.runner': runner,
  };
  const bought = call.traceparent;
  const origin = call.attempt === 1 ? { parent: bought } : { link: bought };
  const span = tracing.beginFrom({ name: 'deliver call', kind: 'client', attributes }, origin);
  return runIn(span, () => work({ ...call, traceparent: span.traceparent }), endOf);
}
