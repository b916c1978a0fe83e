import type { RunnerConfig } from '../../base/config/config.ts';
import { signCall } from '../../base/values/call-signature.ts';
import { leaseHeader, progressUrlHeader } from '../../base/values/progress-token.ts';
import type { Broker } from '../peers/broker/broker.ts';
import type { CallLease, LeasedCall } from '../store/calls.ts';
import { findUntaken, heldName } from '../store/held-leases.ts';
import { passTurn } from './call-order.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { callMetadata, type DeliveryPorts, progressUrl, spelledOut } from './deliver-call.ts';
import { logAttempt, recordAttempt, undeliverable, traceAttempt } from './record-attempt.ts';

/**
 * Publishes one leased call for its runner. It counts as handed over once the broker has stored it; where it has not, or may not have,
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
    const recorded = await recordAttempt(context, call, dead, { isFirstNews: true, runner: runner.name });
    logAttempt(context.log, call, dead, runner.name, recorded);
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
  const { body = Buffer.alloc(0), serviceId, jobIndex, contentType, traceparent } = call;
  const metadata = {
    ...callMetadata(call, context.config.delivery.maxResultBytes),
    [leaseHeader]: call.leaseId,
    [progressUrlHeader]: progressUrl(context, call),
  };
  const id = call.idempotencyKey;
  const signature = signCall({ secret: runner.tokens, id, timestampSecs: nowSecs(context), body, metadata });
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
