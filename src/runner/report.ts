import { createHash } from 'node:crypto';
import { factsOf } from './call.ts';
import { RunnerError } from './errors.ts';
import type { Teller } from './hooks.ts';
import type { Lease } from './lease.ts';
import { type LeaseAnswer, type LeaseClient, type PostOptions, createLeaseClient } from './lease-client.ts';
import type { Outcome } from './outcome.ts';
import type { EncodedResult } from './result.ts';
import { partsOf, resultPartBytes } from '../base/values/result-parts.ts';
import { backOffMs, withJitterMs } from '../base/values/back-off.ts';
import { pause } from '../base/runtime/pause.ts';
import { progressUrlHeader } from '../base/values/progress-token.ts';
import { createReporter, type ReportProgress } from './progress.ts';

interface Reporting {
  readonly client: LeaseClient;
  readonly tell: Teller;
  /** Aborts when nothing is waited for any more. */
  readonly over: AbortSignal;
}

const postTimeoutMs = 10_000;
/** The gateway reads a large result whole before it takes it. */
const largeTimeoutMs = 120_000;
const partTimeoutMs = 30_000;
const firstWaitMs = 200;
const longestReportWaitMs = 5_000;
/** What a gateway takes within a request; longer results go in parts. */
const inlineBytes = 1_048_576;

/** Only the upper half is random, so that a gateway that is down gets no immediate request. */
export function retryWaitMs(failures: number, longestMs: number): number {
  return withJitterMs(backOffMs({ firstMs: firstWaitMs, longestMs }, failures), Math.random(), 0.5);
}

/** Reports the result of a call, repeatedly until the gateway accepts it. */
export async function report(
  context: Reporting,
  lease: Lease,
  outcome: Exclude<Outcome, { kind: 'lost' }>,
  lost: AbortSignal,
): Promise<void> {
  const { tell } = context;
  const answer = await deliver({ ...context, lease, lost }, outcome);
  if (answer.kind === 'ok') return;
  if (answer.kind === 'again') return tell.error(undelivered(lease, 'the runner has given up'));
  if (answer.kind === 'lost') return tell.error(undelivered(lease, 'another attempt has the call now'));
  tell.error(undelivered(lease, answer.reason));
  // the work is done, and repeating it would have the same result: an operator has to decide
  if (outcome.kind !== 'completed' || answer.status === 401 || answer.status === 403) return;
  const message = `the gateway refused the result: ${answer.status}`;
  return report(context, lease, { kind: 'refused', code: 'result_too_large', message }, lost);
}

interface Delivery extends Reporting {
  readonly lease: Lease;
  readonly lost: AbortSignal;
}

async function deliver(context: Delivery, outcome: Exclude<Outcome, { kind: 'lost' }>): Promise<LeaseAnswer> {
  const { lease } = context;
  const call = `/runner/calls/${lease.callId}`;
  if (outcome.kind !== 'completed') return post(context, `${call}/fail`, failureBody(lease, outcome));
  const { result, price } = outcome;
  const end = { lease_id: lease.leaseId, ...(price !== undefined && { price }) };
  if (!result) return post(context, `${call}/complete`, end);
  if (result.body.length > inlineBytes) return deliverInParts(context, call, end, result);
  const answer = await post(context, `${call}/complete`, {
    ...end,
    result: { content_type: result.contentType, body_base64: result.body.toString('base64') },
  });
  // its limit within a request is lower than the usual one, and it takes parts
  const takesParts = (lease.call?.maxResultBytes ?? 0) > inlineBytes;
  const mayGoInParts = takesParts && answer.kind === 'refused' && answer.status === 413;
  return mayGoInParts ? deliverInParts(context, call, end, result) : answer;
}

/** A part that is lost on its way is sent again by itself; a result whose parts do not fit at the end is sent again once. */
async function deliverInParts(
  context: Delivery,
  path: string,
  end: Readonly<Record<string, string>>,
  { contentType, body }: EncodedResult,
): Promise<LeaseAnswer> {
  const { client, lease } = context;
  const sha256 = `0x${createHash('sha256').update(body).digest('hex')}`;
  const stored = { content_type: contentType, bytes: body.length, sha256 };
  for (let isAgain = false; ; isAgain = true) {
    for (let part = 0; part < partsOf(body.length); part++) {
      const bytes = body.subarray(part * resultPartBytes, (part + 1) * resultPartBytes);
      const answer = await insist(context, partTimeoutMs, (options) =>
        client.postBytes(`${path}/result-parts/${part}`, bytes, lease.leaseId, options),
      );
      if (answer.kind !== 'ok') return answer;
    }
    const whole = { ...end, stored_result: stored };
    const answer = await post(context, `${path}/complete`, whole, largeTimeoutMs);
    if (answer.kind !== 'refused' || answer.status !== 422 || isAgain) return answer;
  }
}

function post(
  context: Delivery,
  path: string,
  body: unknown,
  timeoutMs: number = postTimeoutMs,
): Promise<LeaseAnswer> {
  return insist(context, timeoutMs, (options) => context.client.post(path, body, options));
}

/** Sends a request until the gateway decides about it; `again` once that is given up. */
async function insist(
  { over, tell, lease, lost }: Delivery,
  timeoutMs: number,
  send: (options: PostOptions) => Promise<LeaseAnswer>,
): Promise<LeaseAnswer> {
  for (let failures = 0; ; failures += 1) {
    const answer = await send({ signal: over, timeoutMs, ...traceOf(lease) });
    if (answer.kind !== 'again') return answer;
    if (failures === 0) tell.error(undelivered(lease, `the runner retries: ${answer.reason}`));
    const waitMs = Math.max(answer.afterMs, retryWaitMs(failures, longestReportWaitMs));
    if (!(await pause(waitMs, AbortSignal.any([over, lost])))) return answer;
  }
}

/** In characters; the gateway stores longer ones. */
const errorLength = 500;

function failureBody({ leaseId }: Lease, outcome: Extract<Outcome, { kind: 'retry' | 'refused' }>) {
  const error = `${outcome.code}: ${outcome.message}`.slice(0, errorLength).toWellFormed();
  const wait =
    outcome.kind === 'retry' && outcome.afterSecs !== undefined
      ? { retry_after_secs: Math.ceil(outcome.afterSecs) }
      : {};
  return { lease_id: leaseId, error, retry: outcome.kind === 'retry', ...wait };
}

function undelivered(lease: Lease, reason: string): RunnerError {
  const message = `call ${lease.callId}: the gateway did not get its outcome: ${reason}`;
  return new RunnerError('result_undelivered', message, about(lease));
}

/** So that the gateway's trace of a call reaches its result. */
export function traceOf({ call }: Lease) {
  return { traceparent: call?.traceparent };
}

export function about({ call }: Lease) {
  return call ? { call: factsOf(call) } : {};
}

/**
 * Reports the progress of a call that came by itself, pushed or over a broker, to the address in its signed metadata. Undefined if a
 * gateway of an earlier version names none.
 * @param token proves the lease: never the runner's own
 */
export function createReporterOf(
  metadata: Readonly<Record<string, string>>,
  leaseId: string,
  token: string,
  ended: AbortSignal,
): ReportProgress | undefined {
  const url = metadata[progressUrlHeader];
  if (url === undefined || !URL.canParse(url) || !/^https?:/.test(url)) return undefined;
  const client = createLeaseClient(url, token);
  return createReporter((said, options) => client.post('', { lease_id: leaseId, ...said }, options), ended);
}
