import type { RunnerConfig } from '../config/config.ts';
import { signCall } from '../domain/payments/call-signature.ts';
import { sha256 } from '../domain/payments/payment.ts';
import type { PushAnswer, PushRunner } from '../peers/runner/push-runner.ts';
import type { LeasedCall } from '../store/calls.ts';
import { type JobsContext, nowSecs } from './context.ts';
import { isExhausted, recordAttempt } from './record-attempt.ts';

/**
 * The runner's key against duplicates: a hash of the payment's fingerprint. Unlike a call id, which a database that was
 * restored gives out again, it can never name two payments.
 */
function idempotencyKey({ payment }: LeasedCall): string {
  return sha256(payment);
}

/** A call's metadata for its runner: header names in lower case. */
export function callMetadata(call: LeasedCall): Record<string, string> {
  return {
    'x-x402-origin': 'x402',
    'x-x402-quote-digest': call.quoteDigest,
    'x-x402-payment-network': call.network,
    'x-x402-payment-token': call.symbol,
    'x-net-service-id': String(call.serviceId),
    'x-net-job-index': String(call.jobIndex),
    'x-net-call-id': String(call.callId),
    'x-net-idempotency-key': idempotencyKey(call),
    'x-net-attempt': String(call.attempt),
    ...(call.caller ? { 'x-net-caller': call.caller } : {}),
  };
}

/**
 * Pushes one leased call to its runner and records the outcome. Returns `unavailable` if the runner takes no more calls.
 */
export async function deliverCall(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer['kind']> {
  const answer = await attempt(context, runner, peer, call);
  const recorded = await recordAttempt(context, call, answer, true);
  const facts = {
    quote_digest: call.quoteDigest,
    call_id: call.callId,
    attempt: call.attempt,
    runner: runner.name,
  };
  const reason = 'reason' in answer ? answer.reason : undefined;
  if (recorded.kind === 'lease_lost')
    context.log.warn(facts, 'lease lost: the attempt of its new holder counts');
  else if (answer.kind === 'completed') context.log.info(facts, 'call completed');
  else context.log.warn({ ...facts, reason }, `call not delivered: ${answer.kind}`);
  return answer.kind;
}

async function attempt(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer> {
  if (isExhausted(context, call)) return { kind: 'dead', reason: 'attempts_exhausted' };
  if (!call.body) return { kind: 'dead', reason: 'body_missing' };
  return push(context, runner, peer, call, call.body);
}

function push(
  context: JobsContext,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
  body: Buffer,
): Promise<PushAnswer> {
  const metadata = callMetadata(call);
  const id = idempotencyKey(call);
  const signature = signCall({ secret: runner.tokens, id, timestampSecs: nowSecs(context), body, metadata });
  const contentType = call.contentType ? { contentType: call.contentType } : {};
  return peer.push({ headers: { ...metadata, ...signature }, body, ...contentType });
}
