import type { RunnerConfig } from '../../base/config/config.ts';
import {
  type CallLease,
  extendLease,
  findLeasedCall,
  isCompletedBy,
  type JobTurn,
  leaseCalls,
  type LeasedCall,
  type LeaseName,
} from '../store/calls.ts';
import type { StoredResult } from '../store/result-uploads.ts';
import type { SharedPolling } from '../../base/runtime/shared-polling.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { ResultStore } from '../peers/results/result-store.ts';
import { checkParts } from './large-result.ts';
import { isRunnerPaused } from './pause-runner.ts';
import {
  type AttemptOutcome,
  type LoggedPorts,
  type LeaseResult,
  logAttempt,
  recordAttempt,
  undeliverable,
  traceAttempt,
  endAttempt,
} from './record-attempt.ts';

export interface LeasePorts extends LoggedPorts {
  readonly results: ResultStore | undefined;
  readonly leaseLooks: SharedPolling<LeasedCall>;
  readonly stopping: () => boolean;
  readonly tracing?: Tracing | undefined;
}

export interface LeaseRequest {
  readonly max: number;
  readonly leaseSecs: number;
  readonly waitSecs: number;
  readonly services: readonly number[];
  /** The runner's name. */
  readonly runner: string;
  /** Of the configuration in force, which may change while the runner waits. */
  readonly turns: () => readonly JobTurn[];
}

/**
 * Leases at most `max` due calls, waiting up to `waitSecs` for the first. Each is recorded as delivered before its runner gets
 * it. Returns none once `signal` reports that the runner disconnected, or when the process shuts down.
 */
export async function leaseForRunner(
  context: LeasePorts,
  request: LeaseRequest,
  signal: AbortSignal,
): Promise<LeasedCall[]> {
  const { waitSecs, services, runner } = request;
  if (signal.aborted || context.stopping()) return [];
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), waitSecs * 1_000);
  const over = AbortSignal.any([signal, late.signal]);
  // those who wait for the same calls share their looks
  const group = JSON.stringify([runner, ...services.toSorted((a, b) => a - b)]);
  const look = (): Promise<readonly LeasedCall[]> => takeDue(context, request);
  try {
    let leased = await look();
    while (true) {
      const handedOut = (await Promise.all(leased.map((call) => handOut(context, runner, call)))).filter(
        (call) => call !== undefined,
      );
      // the runner disconnected: the calls go back immediately and lose no attempt
      if (signal.aborted) await Promise.all(handedOut.map((call) => returnLease(context, runner, call)));
      if (signal.aborted) return [];
      if (handedOut.length > 0) return handedOut;
      if (leased.length === 0 && (waitSecs === 0 || over.aborted || context.stopping())) return [];
      leased = leased.length > 0 ? await look() : await context.leaseLooks.wait(group, look, over);
    }
  } finally {
    clearTimeout(timer);
  }
}

async function takeDue(
  context: LeasePorts,
  { max, leaseSecs, services, runner, turns }: LeaseRequest,
): Promise<readonly LeasedCall[]> {
  const isPaused = await isRunnerPaused(context, { name: runner });
  return isPaused
    ? []
    : leaseCalls(context.pool, services, max, leaseSecs, turns(), context.config.delivery.maxCallAgeSecs);
}

/** Records that the runner gets this call; undefined if the call cannot be delivered any more. */
function handOut(context: LeasePorts, runner: string, call: LeasedCall): Promise<LeasedCall | undefined> {
  const work = (traced: LeasedCall) => recordHandOut(context, runner, traced);
  return traceAttempt(context.tracing, runner, call, work, (handedOut) => ({
    error: handedOut ? undefined : 'not_handed_out',
  }));
}

async function recordHandOut(
  context: LeasePorts,
  runner: string,
  call: LeasedCall,
): Promise<LeasedCall | undefined> {
  const dead = undeliverable(context, call);
  if (dead) {
    await endAttempt(context, call, dead, { isFirstNews: false, runner });
    return undefined;
  }
  const { callId, leaseId, attempt } = call;
  const { outcome } = await context.lane.append(
    {
      stream: call.stream,
      events: [{ type: 'delivered', data: { call_id: callId, attempt } }],
      call: { op: 'check', callId, leaseId },
    },
    { urgent: true },
  );
  return outcome === 'ok' ? call : undefined;
}

async function returnLease(context: LeasePorts, runner: string, call: LeasedCall): Promise<void> {
  // the ledger has its `delivered` already, or does not need it
  await recordAttempt(context, call, { kind: 'runner_left' }, { isFirstNews: false, runner });
  context.onCallReleased();
}

/** The call of a lease that this runner holds. */
export async function findRunnerLease(
  context: LeasePorts,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
): Promise<CallLease | undefined> {
  const call = await findLeasedCall(context.pool, callId, leaseId);
  return call && runner.services.includes(call.serviceId) ? call : undefined;
}

/**
 * Completes a call with a large result, whose parts its runner has sent under this lease. They are read and compared with what the runner
 * says of them before anything is recorded.
 */
export async function completeStored(
  context: LeasePorts,
  runner: RunnerConfig,
  lease: LeaseName,
  { bytes, sha256 }: StoredResult,
  said: Pick<Extract<AttemptOutcome, { kind: 'completed' }>, 'contentType' | 'price'>,
): Promise<
  LeaseResult | { readonly kind: 'result_mismatch' | 'result_too_large' | 'result_store_unavailable' }
> {
  const { results, config } = context;
  if (!results || bytes > (config.resultStore?.maxBytes ?? 0)) return { kind: 'result_too_large' };
  const stored = { bytes, sha256 };
  // a completion that is sent again needs no parts: the lease is no longer held then
  if (await findRunnerLease(context, runner, lease)) {
    const checked = await checkParts({ ...context, results }, lease, stored);
    if (checked.kind === 'mismatch') return { kind: 'result_mismatch' };
    if (checked.kind === 'unavailable') return { kind: 'result_store_unavailable' };
  }
  const completed = { kind: 'completed', result: Buffer.alloc(0), resultOmitted: false } as const;
  return finishLease(context, runner, lease, { ...completed, ...said, stored });
}

/** Extends a lease, at most to the end of its call's age. Lost also if it never was this runner's. */
export async function extendRunnerLease(
  context: LeasePorts,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  leaseSecs: number,
): Promise<{ readonly kind: 'extended'; readonly endsAt: Date } | { readonly kind: 'lease_lost' }> {
  if (!(await findRunnerLease(context, runner, { callId, leaseId }))) return { kind: 'lease_lost' };
  const { maxCallAgeSecs } = context.config.delivery;
  const endsAt = await extendLease(context.pool, { callId, leaseId }, leaseSecs, maxCallAgeSecs);
  return endsAt ? { kind: 'extended', endsAt } : { kind: 'lease_lost' };
}

/**
 * Ends a lease with the runner's outcome of the attempt. Lost also if it never was this runner's. A completion that the same
 * lease sends again is recorded already.
 */
export async function finishLease(
  context: LeasePorts,
  runner: RunnerConfig,
  { callId, leaseId }: LeaseName,
  outcome: AttemptOutcome,
): Promise<LeaseResult> {
  const call = await findRunnerLease(context, runner, { callId, leaseId });
  if (call) {
    // the `delivered` of a call that came over a broker is recorded with its outcome, as that of a push
    const attempt = { isFirstNews: runner.mode === 'jetstream', runner: runner.name };
    const recorded = await recordAttempt(context, call, outcome, attempt);
    if (recorded.kind === 'recorded') {
      logAttempt(context.log, call, outcome, runner.name, recorded);
      return recorded;
    }
  }
  const isRepeated = outcome.kind === 'completed' && (await isCompletedBy(context.db, callId, leaseId));
  return isRepeated ? { kind: 'recorded', deadReason: undefined } : { kind: 'lease_lost' };
}
