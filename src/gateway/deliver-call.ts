import type { RunnerConfig } from '../config/config.ts';
import { signCall } from '../domain/call-signature.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { sha256 } from '../domain/payment.ts';
import type { PushAnswer, PushRunner } from '../peers/runner.ts';
import type { CallChange } from '../store/append-batch.ts';
import { type LeasedCall, putResult } from '../store/calls.ts';
import { type Gateway, nowSecs } from './gateway.ts';

type Completed = Extract<PushAnswer, { kind: 'completed' }>;

/** What a runner is told about a call beside the request's bytes: header names in lower case. */
function callMetadata(call: LeasedCall): Record<string, string> {
  return {
    'x-x402-origin': 'x402',
    'x-x402-quote-digest': call.quoteDigest,
    'x-x402-payment-network': call.network,
    'x-x402-payment-token': call.symbol,
    'x-net-service-id': String(call.serviceId),
    'x-net-job-index': String(call.jobIndex),
    'x-net-call-id': String(call.callId),
    'x-net-attempt': String(call.attempt),
    ...(call.caller ? { 'x-net-caller': call.caller } : {}),
  };
}

/**
 * Pushes one leased call to its runner and records what came of it. The lease is the fence: where it was lost
 * meanwhile, nothing is recorded and the new holder's attempt counts. Returns `gone` where the runner wants no more calls.
 */
export async function deliverCall(
  gateway: Gateway,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer['kind']> {
  const answer = call.body ? await push(gateway, runner, peer, call, call.body) : bodyMissing;
  const recorded = await recordDelivery(gateway, call, answer);
  const facts = {
    quote_digest: call.quoteDigest,
    call_id: call.callId,
    attempt: call.attempt,
    runner: runner.name,
  };
  const reason = 'reason' in answer ? answer.reason : undefined;
  if (!recorded) gateway.log.warn(facts, 'lease lost: another attempt counts');
  else if (answer.kind === 'completed') gateway.log.info(facts, 'call completed');
  else gateway.log.warn({ ...facts, reason }, `call not delivered: ${answer.kind}`);
  return answer.kind;
}

const bodyMissing: PushAnswer = { kind: 'dead', reason: 'body_missing' };

function push(
  gateway: Gateway,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
  body: Buffer,
): Promise<PushAnswer> {
  const metadata = callMetadata(call);
  const id = String(call.callId);
  const signature = signCall({ secret: runner.token, id, timestampSecs: nowSecs(gateway), body, metadata });
  const contentType = call.contentType ? { contentType: call.contentType } : {};
  return peer.push({ headers: { ...metadata, ...signature }, body, ...contentType });
}

async function recordDelivery(gateway: Gateway, call: LeasedCall, answer: PushAnswer): Promise<boolean> {
  if (answer.kind === 'completed') await putResult(gateway.pool, call, answer.contentType, answer.result);
  const outcome = await gateway.lane.append(
    { stream: call.quoteDigest, ...deliveryStep(gateway, call, answer) },
    { urgent: true },
  );
  return outcome.outcome === 'ok';
}

/** The events of one attempt, and where they leave the call. */
function deliveryStep(
  gateway: Gateway,
  call: LeasedCall,
  answer: PushAnswer,
): { events: LedgerEvent[]; call: CallChange } {
  const { callId, leaseId } = call;
  const attempt = { call_id: callId, attempt: call.attempt };
  switch (answer.kind) {
    case 'completed':
      return {
        events: [
          { type: 'delivered', data: attempt },
          { type: 'completed', data: { ...attempt, ...resultFacts(answer) } },
        ],
        call: { op: 'complete', callId, leaseId },
      };
    case 'dead':
      return {
        events: [{ type: 'dead_lettered', data: { ...attempt, reason: answer.reason } }],
        call: { op: 'dead', callId, leaseId },
      };
    case 'gone':
      // not the call's fault: it costs no attempt, and waits for the runner's return
      return failedStep(gateway, call, 'runner_gone', 'give_back', 1_000);
    case 'retry': {
      const { maxAttempts } = gateway.config.delivery;
      if (call.failures + 1 >= maxAttempts) {
        return {
          events: [
            { type: 'delivery_failed', data: { ...attempt, reason: answer.reason } },
            { type: 'dead_lettered', data: { ...attempt, reason: 'attempts_exhausted' } },
          ],
          call: { op: 'dead', callId, leaseId },
        };
      }
      return failedStep(
        gateway,
        call,
        answer.reason,
        'retry',
        retryDelayMs(gateway, call.failures, answer.retryAfterMs),
      );
    }
  }
}

function failedStep(
  gateway: Gateway,
  call: LeasedCall,
  reason: string,
  op: 'retry' | 'give_back',
  delayMs: number,
) {
  const { callId, leaseId, attempt } = call;
  const retryAt = nowSecs(gateway) + Math.ceil(delayMs / 1_000);
  const failed: LedgerEvent = {
    type: 'delivery_failed',
    data: { call_id: callId, attempt, reason, retry_at: retryAt },
  };
  return { events: [failed], call: { op, callId, leaseId, delayMs } as const };
}

/** Full jitter: many calls that failed together do not come back together. A runner's Retry-After is the least. */
function retryDelayMs(gateway: Gateway, failures: number, retryAfterMs = 0): number {
  const { backoffBaseMs, backoffCapMs } = gateway.config.delivery;
  const ceiling = Math.min(backoffCapMs, backoffBaseMs * 2 ** Math.min(failures, 30));
  return Math.max(retryAfterMs, Math.round(Math.random() * ceiling));
}

function resultFacts(answer: Completed) {
  if (answer.resultOmitted) return {};
  return { result_sha256: sha256(answer.result), result_bytes: answer.result.length };
}
