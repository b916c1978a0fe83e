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
import type { LeasedCall, CallLease } from '../store/calls.ts';
import type { StoredResult } from '../store/result-uploads.ts';
import { passTurn } from './call-order.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { ResultStore } from '../peers/results/result-store.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { createPartWriter, type PartWriter } from './large-result.ts';
import type { Broker } from '../peers/broker/broker.ts';
import { findUntaken, heldName } from '../store/held-leases.ts';
import {
  type LoggedPorts,
  recordAttempt,
  undeliverable,
  traceAttempt,
  endAttempt,
} from './record-attempt.ts';

export interface DeliveryPorts extends LoggedPorts {
  /** Keeps large results; undefined if there is no such store. */
  readonly results: ResultStore | undefined;
  readonly publicUrl: () => string;
  readonly tracing?: Tracing | undefined;
}

/** The longest result that a runner may answer with: if there is a store for large results, as long as that takes. */
export function maxResultBytesOf({ delivery, resultStore }: Config): number {
  return Math.max(delivery.maxResultBytes, resultStore?.maxBytes ?? 0);
}

/** What its metadata says of a call. */
export type CallFacts = Pick<
  LeasedCall,
  'callId' | 'attempt' | 'stream' | 'serviceId' | 'jobIndex' | 'origin' | 'idempotencyKey'
>;

/**
 * A call's metadata for its runner: header names in lower case.
 * @param maxResultBytes the longest result that can come back the way that the call goes
 */
export function callMetadata(call: CallFacts, maxResultBytes: number): Record<string, string> {
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
function originMetadata({ origin, stream }: CallFacts): Record<string, string> {
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

/** What a runner gets that has not leased a call itself: its metadata with the lease and where it says how far it is, and their signature. */
function signed(
  context: DeliveryPorts,
  { tokens }: RunnerConfig,
  call: LeasedCall,
  maxResultBytes: number,
  more: Readonly<Record<string, string>> = {},
) {
  const { idempotencyKey: id, callId, leaseId, body = Buffer.alloc(0) } = call;
  const metadata = {
    ...callMetadata(call, maxResultBytes),
    [leaseHeader]: leaseId,
    [progressUrlHeader]: `${context.publicUrl()}/runner/calls/${callId}/progress`,
    ...more,
  };
  const timestampSecs = nowSecs(context);
  return { metadata, body, signature: signCall({ secret: tokens, id, timestampSecs, body, metadata }) };
}

/** Pushes one leased call to its runner and records the outcome. */
export async function deliverCall(
  context: DeliveryPorts,
  runner: RunnerConfig,
  peer: PushRunner,
  call: LeasedCall,
): Promise<PushAnswer> {
  const deliver = async (traced: LeasedCall): Promise<PushAnswer> => {
    const answer = await pushOnce(context, runner, peer, traced);
    const outcome = 'error' in answer ? { ...answer, error: lastWords(answer.error, runner.tokens) } : answer;
    await endAttempt(context, call, outcome, { isFirstNews: true, runner: runner.name });
    return answer;
  };
  return traceAttempt(context.tracing, runner.name, call, deliver, (answer) => ({
    error: answer.kind === 'completed' ? undefined : answer.reason,
  }));
}

async function pushOnce(
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
  const token = { [progressTokenHeader]: progressToken(runner.tokens[0], call) };
  const { metadata, signature, body } = signed(
    context,
    runner,
    call,
    maxResultBytesOf(context.config),
    token,
  );
  const contentType = call.contentType ? { contentType: call.contentType } : {};
  // not signed: a proxy on the way may insert its own span
  const trace = call.traceparent === undefined ? {} : { traceparent: call.traceparent };
  return peer.push({ headers: { ...metadata, ...signature, ...trace }, body, ...contentType, overflow });
}

/**
 * Publishes one leased call for its runner. It counts as handed over once the broker has stored it; if it has not, or may not have,
 * the lease is given back, which costs the call no attempt: a copy that was stored nevertheless leases the call to no runner.
 */
export async function handOver(
  context: DeliveryPorts,
  runner: RunnerConfig,
  broker: Pick<Broker, 'publish'>,
  call: LeasedCall,
): Promise<'handed_over' | 'not_stored' | 'dead'> {
  const dead = undeliverable(context, call);
  if (dead) {
    await endAttempt(context, call, dead, { isFirstNews: true, runner: runner.name });
    return 'dead';
  }
  await passTurn(context, call);
  const publish = (traced: LeasedCall) => broker.publish(messageOf(context, runner, traced));
  const answer = await traceAttempt(context.tracing, runner.name, call, publish, (ended) => ({
    error: ended.kind === 'stored' ? undefined : 'not_handed_over',
  }));
  if (answer.kind === 'stored') return 'handed_over';
  await giveBack(context, runner, call, `the broker: ${answer.reason}`);
  return 'not_stored';
}

function messageOf(context: DeliveryPorts, runner: RunnerConfig, call: LeasedCall) {
  const { serviceId, jobIndex, contentType, traceparent } = call;
  const { maxResultBytes } = context.config.delivery;
  const { metadata, signature, body } = signed(context, runner, call, maxResultBytes);
  const headers = {
    ...spelledOut(metadata),
    ...signature,
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
  return { runner: runner.name, serviceId, jobIndex, messageId: messageId(call), headers, body };
}

/**
 * The idempotency key. A broker stores one message with an id in some minutes, so that a later attempt, which is due earlier, needs an id of
 * its own.
 */
function messageId({ idempotencyKey, attempt }: LeasedCall): string {
  return attempt === 1 ? idempotencyKey : `${idempotencyKey}.${attempt}`;
}

/** Gives back those of the leases that no runner has taken. */
export async function giveBackUntaken(
  context: DeliveryPorts,
  runner: RunnerConfig,
  leases: readonly CallLease[],
): Promise<void> {
  const untaken = await findUntaken(context.db, leases);
  const left = leases.filter(({ callId, leaseId }) => untaken.has(heldName(callId, leaseId)));
  for (const call of left) await giveBack(context, runner, call, 'no runner took it from the broker');
}

async function giveBack(
  context: DeliveryPorts,
  runner: RunnerConfig,
  call: CallLease,
  error: string,
): Promise<void> {
  const outcome = { kind: 'not_taken', error } as const;
  const recorded = await recordAttempt(context, call, outcome, { isFirstNews: false, runner: runner.name });
  if (recorded.kind === 'recorded') context.onCallReleased();
}
