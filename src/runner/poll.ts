import { RunnerError } from './errors.ts';
import type { Teller } from './hooks.ts';
import { requireWhole } from './job.ts';
import { type Extension, keepLease, isRecord, type Lease, leaseMs, readLeases } from './lease.ts';
import { createLeaseClient, type LeaseAnswer, type LeaseClient } from './lease-client.ts';
import type { Outcome } from './outcome.ts';
import { createReporter } from './progress.ts';
import { about, report, retryWaitMs, traceOf } from './report.ts';
import type { Runs } from './runs.ts';
import type { Slots } from './slots.ts';
import { pause } from '../base/runtime/pause.ts';

export interface PollOptions {
  /** As `https://gateway.example`. */
  readonly gatewayUrl: string;
  /** What the gateway's configuration names as this runner's token. */
  readonly token: string;
  /** Which services' calls to fetch, where others of the jobs come another way. Default: those of all jobs. */
  readonly services?: readonly number[] | undefined;
  /** Calls fetched in one request, 1 to 100. Default 10, and never more than can run. */
  readonly max?: number | undefined;
  /** How long a call is this runner's until it extends it, 5 to 3600. It does so by itself. Default 60. */
  readonly leaseSecs?: number | undefined;
  /** How long the gateway may wait for a call before it answers that there is none, 0 to 30. Default 20. */
  readonly waitSecs?: number | undefined;
}

export interface PollParts {
  /** Of the jobs. */
  readonly services: readonly number[];
  readonly runs: Runs;
  readonly slots: Slots;
  readonly tell: Teller;
  /** Aborts when no more calls are wanted. */
  readonly stopping: AbortSignal;
  /** Aborts when nothing is waited for any more. */
  readonly over: AbortSignal;
  /** Called for each call that the runner starts. */
  readonly track: (serving: Promise<void>) => void;
}

type PollContext = Required<{ [K in keyof PollOptions]: NonNullable<PollOptions[K]> }> &
  PollParts & { readonly client: LeaseClient };

const postTimeoutMs = 10_000;
const longestPollWaitMs = 30_000;
/** Between two answers that there is no call, whatever the gateway does about waiting. */
const emptyPollMs = 1_000;

/** @throws TypeError for options that no gateway would take */
export function preparePoll(options: PollOptions, parts: PollParts): () => Promise<void> {
  const { gatewayUrl, token, max = 10, leaseSecs = 60, waitSecs = 20, services = parts.services } = options;
  requireWhole('max', max, 1, 100);
  requireWhole('leaseSecs', leaseSecs, 5, 3_600);
  requireWhole('waitSecs', waitSecs, 0, 30);
  const stranger = services.find((service) => !parts.services.includes(service));
  if (stranger !== undefined) throw new TypeError(`services: no job is of service ${stranger}`);
  if (services.length < 1 || services.length > 100) throw new TypeError('services: from 1 to 100');
  const client = createLeaseClient(gatewayUrl, token);
  const context = { ...parts, gatewayUrl, token, services, max, leaseSecs, waitSecs, client };
  return () => pollUntilStopped(context);
}

/** Rejects if the gateway refuses this runner: asking again would not help. */
async function pollUntilStopped(context: PollContext): Promise<void> {
  const { slots, stopping, tell, gatewayUrl } = context;
  let failures = 0;
  while (!stopping.aborted) {
    await slots.untilFree(stopping);
    if (stopping.aborted) return;
    const startedAt = performance.now();
    const answer = await askForCalls(context);
    if (stopping.aborted && answer.kind !== 'ok') return;
    const leases = answer.kind === 'ok' ? readLeases(answer.value) : undefined;
    if (answer.kind === 'ok' && leases) {
      failures = 0;
      for (const lease of leases) context.track(serveOrReport(context, lease, answer.serverTimeMs));
      const pollMs = performance.now() - startedAt;
      if (leases.length === 0 && pollMs < emptyPollMs) await pause(emptyPollMs - pollMs, stopping);
      continue;
    }
    if (answer.kind === 'refused') throw refusal(gatewayUrl, answer);
    const reason = 'reason' in answer ? answer.reason : 'an answer that is not a list of leases';
    tell.error(new RunnerError('gateway_unreachable', `polling ${gatewayUrl}: ${reason}`));
    const leastMs = answer.kind === 'again' ? answer.afterMs : 0;
    await pause(Math.max(leastMs, retryWaitMs(failures, longestPollWaitMs)), stopping);
    failures += 1;
  }
}

function askForCalls({ client, slots, max, ...options }: PollContext): Promise<LeaseAnswer> {
  const body = {
    max: Math.max(1, Math.min(max, slots.free())),
    lease_secs: options.leaseSecs,
    wait_secs: options.waitSecs,
    services: options.services,
  };
  const timeoutMs = options.waitSecs * 1_000 + postTimeoutMs;
  return client.post('/runner/leases', body, { signal: options.stopping, timeoutMs });
}

const refusalHints: Readonly<Record<number, string | undefined>> = {
  401: 'it does not know this token as that of a runner with mode = "lease"',
  403: 'this token is not for all of these services: poll({ services }) can name fewer',
};

function refusal(gatewayUrl: string, { status, reason }: Extract<LeaseAnswer, { kind: 'refused' }>) {
  const hint = refusalHints[status] ?? 'polling ends';
  return new RunnerError('gateway_refused', `${gatewayUrl} refuses this runner, ${hint}: ${reason}`);
}

/** Never rejects: the call of a fault is leased again once its lease has ended. */
async function serveOrReport(
  context: PollContext,
  lease: Lease,
  serverTimeMs: number | undefined,
): Promise<void> {
  try {
    await serveLease(context, lease, serverTimeMs);
  } catch (cause) {
    tellFault(context, lease, 'its lease runs out', cause);
  }
}

function tellFault({ tell }: PollContext, lease: Lease, what: string, cause: unknown): void {
  const message = `call ${lease.callId}: the runner failed: ${what}`;
  tell.error(new RunnerError('runner_failed', message, { ...about(lease), cause }));
}

/** Runs one leased call, extends its lease meanwhile, and reports its result. */
async function serveLease(
  context: PollContext,
  lease: Lease,
  serverTimeMs: number | undefined,
): Promise<void> {
  const lost = new AbortController();
  const done = new AbortController();
  const firstMs = leaseMs(lease.expiresAt, serverTimeMs, context.leaseSecs);
  const ended = AbortSignal.any([done.signal, context.over]);
  const kept = {
    firstMs,
    extend: (timeoutMs: number) => extendLease(context, lease, timeoutMs, ended),
    onLost(reason: string) {
      const message = `call ${lease.callId}: the lease is lost: ${reason}`;
      context.tell.error(new RunnerError('lease_lost', message, about(lease)));
      lost.abort();
    },
  };
  keepLease(kept, ended).catch((cause: unknown) =>
    tellFault(context, lease, 'its lease is no longer extended', cause),
  );
  const progress = createReporter(
    (said, options) =>
      context.client.post(
        `/runner/calls/${lease.callId}/progress`,
        { lease_id: lease.leaseId, ...said },
        options,
      ),
    AbortSignal.any([done.signal, lost.signal, context.over]),
  );
  try {
    const { call } = lease;
    const outcome: Outcome = call
      ? await context.runs.take(call, { via: 'lease', lost: lost.signal, progress })
      : malformed(context, lease);
    if (outcome.kind !== 'lost') await report(context, lease, outcome, lost.signal);
  } finally {
    done.abort();
  }
}

function malformed({ tell }: PollContext, { callId }: Lease): Outcome {
  const message = `call ${callId} lacks what every call has`;
  tell.error(new RunnerError('call_malformed', message));
  return { kind: 'refused', code: 'call_malformed', message };
}

/** Asks the gateway to extend a lease. */
async function extendLease(
  { client, leaseSecs }: PollContext,
  lease: Lease,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Extension> {
  const path = `/runner/calls/${lease.callId}/extend`;
  const body = { lease_id: lease.leaseId, lease_secs: leaseSecs };
  const answer = await client.post(path, body, { signal, timeoutMs, ...traceOf(lease) });
  switch (answer.kind) {
    case 'ok': {
      const expiresAt = isRecord(answer.value) ? answer.value['lease_expires_at'] : undefined;
      return { kind: 'held', lastsMs: leaseMs(expiresAt, answer.serverTimeMs, leaseSecs) };
    }
    case 'again':
      return answer;
    case 'lost':
      return { kind: 'lost', reason: 'another attempt has it now' };
    case 'refused':
      return { kind: 'lost', reason: answer.reason };
  }
}
