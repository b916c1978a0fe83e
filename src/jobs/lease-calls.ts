import type { RunnerConfig } from '../config/config.ts';
import { extendLease, findLeasedCall, isCompletedBy, leaseCalls, type LeasedCall } from '../store/calls.ts';
import { pause } from '../runtime/pause.ts';
import type { JobsContext } from './context.ts';
import { type AttemptOutcome, isExhausted, recordAttempt } from './record-attempt.ts';

export interface LeaseRequest {
  readonly max: number;
  readonly leaseSecs: number;
  readonly waitSecs: number;
  readonly services: readonly number[];
}

/** A released call of another process is found at this pace; one of this process at once. */
const pollMs = 1_000;

/**
 * Hands out calls that are due, at most `max`, waiting up to `waitSecs` for the first. Each is recorded as delivered
 * before its runner sees it. Returns none once `signal` says that nobody is listening any more, or the process goes down.
 */
export async function leaseForRunner(
  context: JobsContext,
  { max, leaseSecs, waitSecs, services }: LeaseRequest,
  signal: AbortSignal,
): Promise<LeasedCall[]> {
  const deadline = Date.now() + waitSecs * 1_000;
  while (!signal.aborted && !context.stopping()) {
    const leased = await leaseCalls(context.pool, services, max, leaseSecs);
    const handed = (await Promise.all(leased.map((call) => handOut(context, call)))).filter(isThere);
    // nobody is there to take them: they go back at once, and that costs them no attempt
    if (signal.aborted) await Promise.all(handed.map((call) => giveBack(context, call)));
    if (signal.aborted) return [];
    const leftMs = deadline - Date.now();
    if (handed.length > 0 || (leftMs <= 0 && leased.length === 0)) return handed;
    if (leased.length === 0) await callOrTime(context, Math.min(pollMs, leftMs), signal);
  }
  return [];
}

/** Records that the runner gets this call. Undefined where it can no longer be delivered. */
async function handOut(context: JobsContext, call: LeasedCall): Promise<LeasedCall | undefined> {
  const hopeless = isExhausted(context, call) ? 'attempts_exhausted' : call.body ? undefined : 'body_missing';
  if (hopeless) {
    await recordAttempt(context, call, { kind: 'dead', reason: hopeless }, false);
    return undefined;
  }
  const { callId, leaseId, attempt } = call;
  const { outcome } = await context.lane.append(
    {
      stream: call.quoteDigest,
      events: [{ type: 'delivered', data: { call_id: callId, attempt } }],
      call: { op: 'check', callId, leaseId },
    },
    { urgent: true },
  );
  return outcome === 'ok' ? call : undefined;
}

async function giveBack(context: JobsContext, call: LeasedCall): Promise<void> {
  await recordAttempt(context, call, { kind: 'gone', reason: 'runner_left' }, false);
  context.onCallReleased();
}

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}

async function callOrTime(context: JobsContext, ms: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  await Promise.race([context.callReleased(over.signal).catch(() => {}), pause(ms, either)]);
  over.abort();
}

/** A lease as its holder names it. */
export interface LeaseName {
  readonly callId: number;
  readonly leaseId: string;
}

/** When the lease ends now; undefined where it was lost, or never this runner's. */
export async function extendRunnerLease(
  context: JobsContext,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  leaseSecs: number,
): Promise<Date | undefined> {
  const call = await findLeasedCall(context.db, callId, leaseId);
  if (!call || !runner.services.includes(call.serviceId)) return undefined;
  return extendLease(context.pool, callId, leaseId, leaseSecs);
}

/**
 * Ends a lease with what its runner says of the attempt. False where the lease was lost, or never this runner's.
 * A completion that is sent again by who made it is true again.
 */
export async function finishLease(
  context: JobsContext,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  outcome: AttemptOutcome,
): Promise<boolean> {
  const call = await findLeasedCall(context.db, callId, leaseId);
  if (call && runner.services.includes(call.serviceId)) {
    const recorded = await recordAttempt(context, call, outcome, false);
    const facts = {
      quote_digest: call.quoteDigest,
      call_id: callId,
      attempt: call.attempt,
      runner: runner.name,
    };
    if (recorded) context.log.info(facts, `call ${outcome.kind}`);
    if (recorded) return true;
  }
  return outcome.kind === 'completed' && isCompletedBy(context.db, callId, leaseId);
}
