import type { RunnerConfig } from '../config/config.ts';
import { extendLease, findLeasedCall, isCompletedBy, leaseCalls, type LeasedCall } from '../store/calls.ts';
import { pause } from '../runtime/pause.ts';
import type { JobsContext } from './context.ts';
import { type AttemptOutcome, isExhausted, type LeaseResult, recordAttempt } from './record-attempt.ts';

export interface LeaseRequest {
  readonly max: number;
  readonly leaseSecs: number;
  readonly waitSecs: number;
  readonly services: readonly number[];
}

/** How often calls that other processes released are looked for; those of this process are found at once. */
const pollMs = 1_000;

/**
 * Leases at most `max` due calls, waiting up to `waitSecs` for the first. Each is recorded as delivered before its runner gets
 * it. Returns none once `signal` reports that the runner disconnected, or when the process shuts down.
 */
export async function leaseForRunner(
  context: JobsContext,
  { max, leaseSecs, waitSecs, services }: LeaseRequest,
  signal: AbortSignal,
): Promise<LeasedCall[]> {
  const deadline = Date.now() + waitSecs * 1_000;
  while (!signal.aborted && !context.stopping()) {
    const leased = await leaseCalls(context.pool, services, max, leaseSecs);
    const handedOut = (await Promise.all(leased.map((call) => handOut(context, call)))).filter(
      (call) => call !== undefined,
    );
    // the runner disconnected: the calls go back at once and lose no attempt
    if (signal.aborted) await Promise.all(handedOut.map((call) => returnLease(context, call)));
    if (signal.aborted) return [];
    const leftMs = deadline - Date.now();
    if (handedOut.length > 0 || (leftMs <= 0 && leased.length === 0)) return handedOut;
    if (leased.length === 0) await waitForCall(context, Math.min(pollMs, leftMs), signal);
  }
  return [];
}

/** Records that the runner gets this call; undefined if the call cannot be delivered any more. */
async function handOut(context: JobsContext, call: LeasedCall): Promise<LeasedCall | undefined> {
  const undeliverable = isExhausted(context, call)
    ? 'attempts_exhausted'
    : call.body
      ? undefined
      : 'body_missing';
  if (undeliverable) {
    await recordAttempt(context, call, { kind: 'dead', reason: undeliverable }, false);
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

async function returnLease(context: JobsContext, call: LeasedCall): Promise<void> {
  await recordAttempt(context, call, { kind: 'unavailable', reason: 'runner_left' }, false);
  context.onCallReleased();
}

async function waitForCall(context: JobsContext, ms: number, signal: AbortSignal): Promise<void> {
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

/** Extends a lease. Lost also if it never was this runner's. */
export async function extendRunnerLease(
  context: JobsContext,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  leaseSecs: number,
): Promise<{ readonly kind: 'extended'; readonly endsAt: Date } | { readonly kind: 'lease_lost' }> {
  const call = await findLeasedCall(context.db, callId, leaseId);
  if (!call || !runner.services.includes(call.serviceId)) return { kind: 'lease_lost' };
  const endsAt = await extendLease(context.pool, callId, leaseId, leaseSecs);
  return endsAt ? { kind: 'extended', endsAt } : { kind: 'lease_lost' };
}

/**
 * Ends a lease with the runner's outcome of the attempt. Lost also if it never was this runner's. A completion that the same
 * lease sends again is recorded already.
 */
export async function finishLease(
  context: JobsContext,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  outcome: AttemptOutcome,
): Promise<LeaseResult> {
  const call = await findLeasedCall(context.db, callId, leaseId);
  if (call && runner.services.includes(call.serviceId)) {
    const recorded = await recordAttempt(context, call, outcome, false);
    const facts = {
      quote_digest: call.quoteDigest,
      call_id: callId,
      attempt: call.attempt,
      runner: runner.name,
    };
    if (recorded.kind === 'recorded') {
      context.log.info(facts, `call ${outcome.kind}`);
      return recorded;
    }
  }
  const isRepeated = outcome.kind === 'completed' && (await isCompletedBy(context.db, callId, leaseId));
  return { kind: isRepeated ? 'recorded' : 'lease_lost' };
}
