import type { Config, RunnerConfig } from '../../base/config/config.ts';
import { signCall } from '../../base/values/call-signature.ts';
import {
  leaseHeader,
  progressToken,
  progressTokenHeader,
  progressUrlHeader,
} from '../../base/values/progress-token.ts';
import { maxResultHeader } from '../../base/values/result-parts.ts';
import { lastWords } from '../../base/values/last-words.ts';
import type { PushAnswer, PushRunner } from '../peers/runner/push-runner.ts';
import type { LeasedCall } from '../store/calls.ts';
import type { StoredResult } from '../store/result-uploads.ts';
import { passTurn } from './call-order.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { ResultStore } from '../peers/results/result-store.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { createPartWriter, type PartWriter } from './large-result.ts';
import {
  type LoggedPorts,
  logAttempt,
  recordAttempt,
  undeliverable,
  traceAttempt,
} from './record-attempt.ts';

export interface DeliveryPorts extends LoggedPorts {
  /** Keeps large results; undefined where there is no such store. */
  readonly results: ResultStore | undefined;
  readonly publicUrl: () => string;
  readonly tracing?: Tracing | undefined;
}

/** The longest result that a runner may answer with: where there is a store for large results, as long as that takes. */
export function maxResultBytesOf({ delivery, resultStore }: Config): number {
  return Math.max(delivery.maxResultBytes, resultStore?.maxBytes ?? 0);
}

/**
 * A call's metadata for its runner: header names in lower case.
 * @param maxResultBytes the longest result that can come back the way that the call goes
 */
export function callMetadata(call: LeasedCall, maxResultBytes: number): Record<string, string> {
  return {
    ...originMetadata(call),
    'x-net-service-id': String(call.serviceId),
    'x-net-job-index': String(call.jobIndex),
    'x-net-call-id': String(call.callId),
    // unlike a call id, which a database that was restored gives out again, it never names two payments or firings
    'x-net-idempotency-key': call.idempotencyKey,
    'x-net-attempt': String(call.attempt),
    [maxResultHeader]: String(maxResultBytes),
  };
}

/** Metadata with the names in capitals: keys of JSON and headers of a broker keep their case, which those of HTTP do not. */
export function spelledOut(metadata: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name.toUpperCase(), value]));
}

/** The source of the call. A call without a payment lacks the payment's headers. */
function originMetadata({ origin, stream }: LeasedCall): Record<string, string> {
  if (origin.kind !== 'x402')
    return {
      'x-net-trigger': origin.kind,
      'x-net-trigger-name': origin.name,
      'x-net-trigger-id': origin.id,
    };
  return {
    'x-x402-origin': 'x402',
    'x-x402-quote-digest': stream,
    'x-x402-payment-network': origin.network,
    'x-x402-payment-asset': origin.asset,
    'x-x402-payment-token': origin.symbol,
    'x-net-trigger': 'x402',
    ...(origin.caller ? { 'x-net-caller': origin.caller } : {}),
  };
}

/** Where a runner that has not leased a call itself says how far it is. */
export function progressUrl({ publicUrl }: Pick<DeliveryPorts, 'publicUrl'>, { callId }: LeasedCall): string {
  return `${publicUrl()}/runner/calls/${callId}/progress`;
}

/** Pushes one leased call to its runner and records the outcome. */
export async function deliverCall(
  context: DeliveryPorts,
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
  context: DeliveryPorts,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer & { readonly stored?: StoredResult }> {
  const dead = undeliverable(context, call);
  if (dead) return dead;
  await passTurn(context, call);
  const { results, config } = context;
  const writer =
    results && config.resultStore
      ? createPartWriter({ ...context, results }, call, config.resultStore.maxBytes)
      : undefined;
  const answer = await push(context, runner, peer, call, writer);
  if (answer.kind !== 'completed' || !answer.hasOverflowed || !writer) return answer;
  try {
    return { ...answer, stored: await writer.finish() };
  } catch (error) {
    return { kind: 'retry', reason: 'not_kept', error: String(error) };
  }
}

function push(
  context: DeliveryPorts,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
  overflow: PartWriter | undefined,
): Promise<PushAnswer> {
  const { body = Buffer.alloc(0) } = call;
  const metadata = {
    ...callMetadata(call, maxResultBytesOf(context.config)),
    [leaseHeader]: call.leaseId,
    [progressUrlHeader]: progressUrl(context, call),
    [progressTokenHeader]: progressToken(runner.tokens[0], call),
  };
  const id = call.idempotencyKey;
  const signature = signCall({ secret: runner.tokens, id, timestampSecs: nowSecs(context), body, metadata });
  const contentType = call.contentType ? { contentType: call.contentType } : {};
  // not signed: a proxy on the way may insert its own span
  const trace = call.traceparent === undefined ? {} : { traceparent: call.traceparent };
  return peer.push({ headers: { ...metadata, ...signature, ...trace }, body, ...contentType, overflow });
}
