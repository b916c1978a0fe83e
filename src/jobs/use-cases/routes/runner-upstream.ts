import { Readable } from 'node:stream';
import type { JobsConfig } from '../../../base/config/config.ts';
import { runnerRoutes } from '../../../base/config/routes.ts';
import type { PromiseTracker } from '../../../base/runtime/promise-tracker.ts';
import type { Address } from '../../../base/values/primitives.ts';
import { pause } from '../../../base/runtime/pause.ts';
import { answerPriceHeader, readResultHead } from '../../../base/values/answer-price.ts';
import { type JobId, jobKey } from '../../../base/values/job.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { triggeredStream } from '../../../base/values/triggers/trigger.ts';
import { type CallResult, readResult } from '../../../calls/store/calls.ts';
import type { ResultStore } from '../../../calls/peers/results/result-store.ts';
import { discardCall } from '../../../calls/use-cases/discard-call.ts';
import { readWhole } from '../../../calls/use-cases/large-result.ts';
import { grownWithin, type StreamWatch } from '../../../calls/use-cases/stream-watch.ts';
import type { EventData, RecordedEvent } from '../../../ledger/rules/event.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import {
  textOf,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamFailure,
  type UpstreamRequest,
} from '../../peers/upstream.ts';
import type { Header } from '../../rules/route-headers.ts';
import { changePlaces, isRunnerAway, type RunnerSilence } from '../capacity.ts';
import { type MadeCall, type TriggerContext, triggerCall } from '../triggers/trigger-call.ts';

interface RunnerPorts extends TriggerContext {
  readonly settings: JobsConfig;
  readonly runnerSilence: RunnerSilence;
  readonly streams: StreamWatch;
  readonly results: ResultStore | undefined;
  readonly stopping: () => boolean;
  readonly flows: PromiseTracker;
  readonly asking: Map<Address, number>;
}

/** What other processes have recorded is seen this late at the latest. */
const lookAgainMs = 1_000;

/**
 * A job as the upstream of routes: each paid request makes one call, which the job's runner executes under leases, as any other, and whose
 * result is the answer. A request that is repeated with the same idempotency key, by any process, waits for the same call. A call whose request
 * does not wait any longer is given up, unless a runner has it.
 */
function createRunnerUpstream(job: JobId, current: () => RunnerPorts): Upstream {
  return {
    request: (request) =>
      answerOf(current(), job, request).catch((error: unknown) => failed('upstream_reset', textOf(error))),
    isOpen() {
      const { config, settings, runnerSilence, lane } = current();
      if (lane.state.triggeredCalls >= config.limits.maxOutstandingCalls) return true;
      const hasRunner = config.runners.some(({ services }) => services.includes(job.serviceId));
      const { maxRunnerSilenceSecs = 0 } = settings.jobPolicies.get(jobKey(job)) ?? {};
      return isRunnerAway({ runnerSilence }, { ...job, hasRunner, maxRunnerSilenceSecs });
    },
    isFailing: () => false,
    close: () => Promise.resolve(),
  };
}

/** The jobs that routes sell, by the names that they have as upstreams. */
export function createRunnerUpstreams(
  { routes }: Pick<JobsConfig, 'routes'>,
  current: () => RunnerPorts,
): Record<string, Upstream> {
  const sold = runnerRoutes(routes).map(({ route, job }): [string, Upstream] => [
    route.upstream,
    createRunnerUpstream(job, current),
  ]);
  return Object.fromEntries(sold);
}

async function answerOf(
  context: RunnerPorts,
  job: JobId,
  { headers, body, timeoutMs, signal, paid }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  const id = valueOf(headers, 'x-net-idempotency-key');
  const name = `${valueOf(headers, 'x-net-service-id')}.${valueOf(headers, 'x-net-job-index')}`;
  if (id === undefined) return failed('not_sendable', 'the request has no idempotency key');
  const contentType = valueOf(headers, 'content-type');
  const made = await triggerCall(context, { kind: 'route', name, id, job, body, contentType });
  if (made.kind === 'busy') return failed('upstream_unreachable', `no call was made: ${made.reason}`);
  if (made.kind === 'conflict') return failed('not_sendable', 'this payment has made a call of another body');
  const over = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const end = await endOf(context, made, over);
  if (end.kind === 'completed') return headOf(context, made, end.data);
  // one whose payment is settled is asked for again
  if (paid) void context.flows.add(giveUp(context, made, paid.payer));
  if (end.kind === 'dead') return failed('runner_failed', `its call is a dead letter: ${end.reason}`);
  return failed('upstream_timeout', 'no runner has completed its call in time');
}

type End =
  | { readonly kind: 'completed'; readonly data: EventData<'completed'> }
  | { readonly kind: 'dead'; readonly reason: string }
  | { readonly kind: 'open' };

/** How a call has ended; `open` once nothing waits for it any longer. */
async function endOf(context: RunnerPorts, call: MadeCall, over: AbortSignal): Promise<End> {
  for (;;) {
    // a database that does not answer now is asked again: the runner works on
    const read = await readCall(context, call).catch(() => undefined);
    const end: End = read ? lastOf(read.events) : { kind: 'open' };
    if (end.kind !== 'open' || over.aborted) return end;
    if (read) await grown(context, call, read.version, over);
    else await pause(lookAgainMs, over);
  }
}

async function readCall({ pool }: RunnerPorts, { idempotencyKey }: MadeCall) {
  const { events } = await readStream(pool, triggeredStream(idempotencyKey));
  return { events, version: events.at(-1)?.version ?? 0 };
}

function lastOf(events: readonly RecordedEvent[]): End {
  let end: End = { kind: 'open' };
  for (const { type, data } of events) {
    if (type === 'completed') end = { kind: 'completed', data };
    else if (type === 'dead_lettered') end = { kind: 'dead', reason: data.reason };
    else if (type === 'operator_requeued') end = { kind: 'open' };
  }
  return end;
}

/** Until the call's stream has grown, in this process or another, or it is to be looked at again. */
function grown(context: RunnerPorts, { idempotencyKey }: MadeCall, version: number, over: AbortSignal) {
  return grownWithin(context, { stream: triggeredStream(idempotencyKey), version }, over, lookAgainMs);
}

/** A result as the ledger has it, with what it costs. */
async function headOf(
  context: RunnerPorts,
  { callId }: MadeCall,
  { attempt, result_sha256: sum, head_sha256: headSum }: EventData<'completed'>,
): Promise<UpstreamAnswer> {
  if (sum === undefined) return failed('upstream_too_large', 'the result was too large to be kept');
  const result = await readResult(context.db, callId, attempt);
  if (!result) return failed('upstream_reset', 'the result is kept no longer');
  const { body, stored, head, contentType = 'application/octet-stream' } = result;
  const isSame = (stored?.sha256 ?? sha256(body)) === sum;
  if (!isSame || (head === undefined ? undefined : sha256(head)) !== headSum)
    return failed('upstream_malformed', 'the stored result is not the one that the ledger has');
  const price = head === undefined ? {} : { [answerPriceHeader]: readResultHead(head) };
  const headers = { 'content-type': contentType, ...price };
  const pieces = bodyOf(context, callId, result);
  if (!pieces) return failed('result_store_unavailable', 'this gateway has no result store');
  const source = Readable.from(pieces, { objectMode: false }).on('error', () => {});
  return { kind: 'head', status: 200, headers, body: source, trailers: {} };
}

function bodyOf(
  { results, log }: RunnerPorts,
  callId: number,
  { body, stored, leaseId }: CallResult,
): Iterable<Buffer> | AsyncIterable<Buffer> | undefined {
  if (!stored) return body.length === 0 ? [] : [body];
  return results && readWhole({ results, log }, { callId, leaseId }, stored);
}

/** One of this many looks at an unchanged call tries to give it up. */
const looksATry = 10;

/** Why a call is given up that no request waits for. */
export const unawaited = { why: 'the request of its route does not wait for it', operator: 'route' };

/**
 * A call that no request waits for is not worth its work. While a runner has it, its outcome is waited for: a failed attempt is not repeated, and
 * its payer has one place less for others. What a process leaves open, a worker gives up (`startUnawaitedEnder`). Never rejects.
 */
async function giveUp(context: RunnerPorts, call: MadeCall, payer: Address): Promise<void> {
  const forever = new AbortController().signal;
  changePlaces(context, payer, 1);
  try {
    let tried = -1;
    for (let looks = 0; looks === 0 || !context.stopping(); looks++) {
      const { version } = await readCall(context, call);
      // an expired lease appends nothing
      if (version !== tried || looks % looksATry === 0) {
        tried = version;
        const { kind } = await discardCall(context, call.callId, unawaited);
        if (kind !== 'with_runner') return;
      }
      await grown(context, call, version, forever);
    }
  } catch (error) {
    context.log.warn(
      { call_id: call.callId, error: textOf(error) },
      'a call of a route was not given up yet',
    );
  } finally {
    changePlaces(context, payer, -1);
  }
}

function failed(reason: UpstreamFailure, error: string): UpstreamAnswer {
  return { kind: 'failed', reason, error };
}

function valueOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1];
}
