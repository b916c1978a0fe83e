import { type CallMetadata, type CallVerification, verifyCall } from '../base/values/call-signature.ts';
import { answerPriceHeader } from '../base/values/answer-price.ts';
import { leaseHeader, progressTokenHeader } from '../base/values/progress-token.ts';
import { readCall } from './call.ts';
import { RunnerError } from './errors.ts';
import type { Teller } from './hooks.ts';
import type { Outcome, Refused, Retry } from './outcome.ts';
import type { ReportProgress } from './progress.ts';
import { createReporterOf } from './report.ts';
import type { Runs } from './runs.ts';

/** A pushed call, from whatever server received it. */
export interface PushRequest {
  /** As node:http gives them: names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes as they came: a body that was parsed and written again fails its signature. */
  readonly body: Uint8Array;
}

/** What to answer it with. */
export interface PushAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * 503 says that the runner has no room: the call loses no attempt. 429 and other 5xx are failed attempts, other 4xx dead letters; 410
 * would pause the whole runner.
 */
export const pushStatuses: Readonly<Record<Refused['code'] | Retry['code'], number>> = {
  call_malformed: 400,
  job_unknown: 404,
  trigger_not_wired: 403,
  input_invalid: 422,
  refused: 422,
  result_too_large: 422,
  retry_later: 429,
  handler_failed: 500,
  runner_failed: 500,
  runner_full: 503,
  runner_stopping: 503,
  handler_timeout: 504,
};

/** Verifies a pushed call, runs it and returns the answer. Never rejects. */
export async function answerPush(
  { headers, body }: PushRequest,
  { secret, runs, tell }: { readonly secret: string; readonly runs: Runs; readonly tell: Teller },
): Promise<PushAnswer> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const verification = verifyCall({ secret, headers, body, nowSecs });
  if (!verification.ok) {
    const message = `a call was not signed by the gateway: ${verification.reason}`;
    tell.error(new RunnerError('signature_refused', message));
    return problem(401, verification.reason, message);
  }
  const call = readPush(verification, headers, body);
  if (!call) {
    const message = `call ${verification.id} lacks what every call has`;
    tell.error(new RunnerError('call_malformed', message));
    return problem(pushStatuses.call_malformed, 'call_malformed', message);
  }
  const done = new AbortController();
  try {
    const progress = reporterOf(verification.metadata, done.signal);
    return answerOf(await runs.take(call, { via: 'push', ...(progress && { progress }) }));
  } finally {
    done.abort();
  }
}

/** A gateway of an earlier version has sent no token of the lease. */
function reporterOf(metadata: CallMetadata, ended: AbortSignal): ReportProgress | undefined {
  const { [leaseHeader]: leaseId, [progressTokenHeader]: token } = metadata;
  return leaseId && token ? createReporterOf(metadata, leaseId, token, ended) : undefined;
}

function readPush(
  { id, metadata }: Extract<CallVerification, { ok: true }>,
  { 'content-type': contentType, traceparent }: PushRequest['headers'],
  body: Uint8Array,
) {
  // the content type comes from the client and is not signed
  const type = typeof contentType === 'string' ? contentType : undefined;
  const call = readCall(
    metadata,
    type,
    Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    traceparent,
  );
  return call && call.idempotencyKey === id ? call : undefined;
}

function answerOf(outcome: Outcome): PushAnswer {
  switch (outcome.kind) {
    case 'completed': {
      const { result, price } = outcome;
      const costs = price === undefined ? {} : { [answerPriceHeader]: price };
      if (!result) return { status: 204, headers: costs, body: Buffer.alloc(0) };
      return { status: 200, headers: { 'content-type': result.contentType, ...costs }, body: result.body };
    }
    case 'refused':
      return problem(pushStatuses[outcome.code], outcome.code, outcome.message);
    case 'retry': {
      const { code, message, afterSecs } = outcome;
      const wait = afterSecs === undefined ? {} : { 'retry-after': String(Math.ceil(afterSecs)) };
      return problem(pushStatuses[code], code, message, wait);
    }
    case 'lost':
      return problem(503, outcome.code, outcome.message);
  }
}

/** An error in the shape that Tollbook uses everywhere. */
export function problem(
  status: number,
  code: string,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): PushAnswer {
  const body = Buffer.from(JSON.stringify({ error, code }));
  return { status, headers: { ...headers, 'content-type': 'application/json; charset=utf-8' }, body };
}
