import type { EncodedClaim } from './claim-key.ts';
import type { CallChange } from './lane-command.ts';

/** JSON of the body that travels with a call; undefined for none. */
export function encodeBody(call: CallChange | undefined): string | undefined {
  if ((call?.op !== 'add' && call?.op !== 'enqueue') || !call.body) return undefined;
  const { contentType, bytes } = call.body;
  return JSON.stringify({
    body_id: call.bodyId,
    content_type: contentType,
    base64: bytes.toString('base64'),
  });
}

/** The claims that a call keeps, for when its payment frees them: a payment never frees its own nonce. */
export function keptClaims(claims: readonly EncodedClaim[]): EncodedClaim[] {
  return claims.filter(({ kind }) => kind !== 'payment');
}

/**
 * A change of a call as the JSON that the append function reads.
 * @param kept the claims that an added call keeps, as `keptClaims()` chooses them
 */
export function encodeCall(call: CallChange, kept: readonly EncodedClaim[]): string {
  switch (call.op) {
    case 'add': {
      const {
        op,
        serviceId,
        jobIndex,
        bodyId,
        network,
        asset,
        symbol,
        caller,
        payment,
        idempotencyKey,
        delayMs,
        traceparent,
        order,
      } = call;
      const claims = kept.length > 0 ? kept : undefined;
      return JSON.stringify({
        op,
        service_id: serviceId,
        job_index: jobIndex,
        body_id: bodyId,
        network,
        asset,
        symbol,
        caller,
        payment,
        idempotency_key: idempotencyKey,
        delay_ms: delayMs,
        traceparent,
        order_key: order?.key,
        key_limit: order?.limit,
        keeps_key: order?.keepsPlace,
        key_failures: order?.maxFailures,
        claims,
      });
    }
    case 'enqueue': {
      const { op, newCallId, serviceId, jobIndex, bodyId, idempotencyKey, trigger, traceparent } = call;
      return JSON.stringify({
        op,
        new_call_id: newCallId,
        service_id: serviceId,
        job_index: jobIndex,
        body_id: bodyId,
        payment: idempotencyKey,
        traceparent,
        trigger_kind: trigger.kind,
        trigger_name: trigger.name,
        trigger_id: trigger.id,
      });
    }
    case 'release':
    case 'watch':
    case 'remove':
    case 'suspend':
    case 'mark_unpaid':
    case 'requeue':
    case 'discard':
      return JSON.stringify({ op: call.op, call_id: call.callId });
    case 'complete':
    case 'check':
      return JSON.stringify({ op: call.op, call_id: call.callId, lease_id: call.leaseId });
    case 'dead_letter': {
      const { op, callId, leaseId, reason, runner, error } = call;
      return JSON.stringify({ op, call_id: callId, lease_id: leaseId, reason, runner, error });
    }
    case 'retry':
    case 'return_lease': {
      const { op, callId, leaseId, delayMs, reason, runner, error } = call;
      const failure = { reason, runner, error };
      return JSON.stringify({ op, call_id: callId, lease_id: leaseId, delay_ms: delayMs, ...failure });
    }
  }
}
