import type { RunnerConfig } from '../config/config.ts';
import {
  type CallLease,
  extendLease,
  findLeasedCall,
  isCompletedBy,
  leaseCalls,
  type LeasedCall,
} from '../store/calls.ts';
import { pause } from '../runtime/pause.ts';
import type { JobsContext } from './context.ts';
import { isRunnerPaused } from './pause-runner.ts';
import {
  type AttemptOutcome,
  type LeaseResult,
  logAttempt,
  recordAttempt,
  undeliverable,
} from './record-attempt.ts';
import { traceAttempt } from './trace-attempt.ts';

export interface LeaseRequest {
  readonly max: number;
  readonly leaseSecs: number;
  readonly waitSecs: number;
  readonly services: readonly number[];
  /** The runner's name. */
  readonly runner: string;
}

/** How often calls that other processes released are looked for; those of this process are found at once. */
const pollMs = 1_000;

/**
 * Leases at most `max` due calls, waiting up to `waitSecs` for the first. Each is recorded as delivered before its runner gets
 * it. Returns none once `signal` reports that the runner disconnected, or when the process shuts down.
 */
export async function leaseForRunner(
  context: JobsContext,
  { max, leaseSecs, waitSecs, services, runner }: LeaseRequest,
  signal: AbortSignal,
): Promise<LeasedCall[]> {
  const deadline = Date.now() + waitSecs * 1_000;
  while (!signal.aborted && !context.stopping()) {
    const isPaused = await isRunnerPaused(context, { name: runner });
    const leased = isPaused ? [] : await leaseCalls(context.pool, services, max, leaseSecs);
    const handedOut = (await Promise.all(leased.map((call) => handOut(context, runner, call)))).filter(
      (call) => call !== undefined,
    );
    // the runner disconnected: the calls go back at once and lose no attempt
    if (signal.aborted) await Promise.all(handedOut.map((call) => returnLease(context, runner, call)));
    if (signal.aborted) return [];
    const leftMs = deadline - Date.now();
    if (handedOut.length > 0 || (leftMs <= 0 && leased.length === 0)) return handedOut;
    if (leased.length === 0) await waitForCall(context, Math.min(pollMs, leftMs), signal);
  }
  return [];
}

/** Records that the runner gets this call; undefined if the call cannot be delivered any more. */
function handOut(context: JobsContext, runner: string, call: LeasedCall): Promise<LeasedCall | undefined> {
  const work = (traced: LeasedCall) => recordHandOut(context, runner, traced);
  return traceAttempt(context.tracing, runner, call, work, (handedOut) => ({
    error: handedOut ? undefined : 'not_handed_out',
  }));
}

async function recordHandOut(
  context: JobsContext,
  runner: string,
  call: LeasedCall,
): Promise<LeasedCall | undefined> {
  const dead = undeliverable(context, call);
  if (dead) {
    logAttempt(context.log, call, dead, runner, await record(context, call, dead, runner));
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

async function returnLease(context: JobsContext, runner: string, call: LeasedCall): Promise<void> {
  await record(context, call, { kind: 'runner_left' }, runner);
  context.onCallReleased();
}

/** The ledger has the `delivered` of a leased call already, or does not need it. */
function record(
  context: JobsContext,
  call: CallLease,
  outcome: AttemptOutcome,
  runner: string,
): Promise<LeaseResult> {
  return recordAttempt(context, call, outcome, { isFirstNews: false, runner });
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
    const recorded = await record(context, call, outcome, runner.name);
    if (recorded.kind === 'recorded') {
      logAttempt(context.log, call, outcome, runner.name, recorded);
      return recorded;
    }
  }
  const isRepeated = outcome.kind === 'completed' && (await isCompletedBy(context.db, callId, leaseId));
  return isRepeated ? { kind: 'recorded', deadReason: undefined } : { kind: 'lease_lost' };
}
