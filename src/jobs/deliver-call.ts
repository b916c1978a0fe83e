import type { RunnerConfig } from '../config/config.ts';
import { signCall } from '../domain/payments/call-signature.ts';
import { lastWords } from '../domain/values/last-words.ts';
import type { PushAnswer, PushRunner } from '../peers/runner/push-runner.ts';
import type { LeasedCall } from '../store/calls.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { logAttempt, recordAttempt, undeliverable } from './record-attempt.ts';
import { traceAttempt } from './trace-attempt.ts';

/**
 * The runner's key against duplicates: the hash of the payment's fingerprint. Unlike a call id, which a database that was
 * restored gives out again, it can never name two payments.
 */
function idempotencyKey({ payment }: LeasedCall): string {
  return payment;
}

/** A call's metadata for its runner: header names in lower case. */
export function callMetadata(call: LeasedCall): Record<string, string> {
  return {
    'x-x402-origin': 'x402',
    'x-x402-quote-digest': call.quoteDigest,
    'x-x402-payment-network': call.network,
    'x-x402-payment-asset': call.asset,
    'x-x402-payment-token': call.symbol,
    'x-net-service-id': String(call.serviceId),
    'x-net-job-index': String(call.jobIndex),
    'x-net-call-id': String(call.callId),
    'x-net-idempotency-key': idempotencyKey(call),
    'x-net-attempt': String(call.attempt),
    ...(call.caller ? { 'x-net-caller': call.caller } : {}),
  };
}

/** Pushes one leased call to its runner and records the outcome. */
export async function deliverCall(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer> {
  const deliver = async (traced: LeasedCall): Promise<PushAnswer> => {
    const answer = await attempt(context, runner, peer, traced);
    const outcome = 'error' in answer ? { ...answer, error: lastWords(answer.error, runner.tokens) } : answer;
    const recorded = await recordAttempt(context, call, outcome, { isFirstNews: true, runner: runner.name });
    logAttempt(context.log, call, outcome, runner.name, recorded);
    return answer;
  };
  return traceAttempt(context.tracing, runner.name, call, deliver, (answer) => ({
    error: answer.kind === 'completed' ? undefined : answer.reason,
  }));
}

async function attempt(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer> {
  const dead = undeliverable(context, call);
  return dead ?? push(context, runner, peer, call);
}

function push(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer> {
  const { body = Buffer.alloc(0) } = call;
  const metadata = callMetadata(call);
  const id = idempotencyKey(call);
  const signature = signCall({ secret: runner.tokens, id, timestampSecs: nowSecs(context), body, metadata });
  const contentType = call.contentType ? { contentType: call.contentType } : {};
  // not signed: a proxy on the way may put a span of its own between
  const trace = call.traceparent === undefined ? {} : { traceparent: call.traceparent };
  return peer.push({ headers: { ...metadata, ...signature, ...trace }, body, ...contentType });
}
