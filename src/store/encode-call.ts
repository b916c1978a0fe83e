import type { CallChange } from './lane-command.ts';

/** JSON of the body that travels with a call; undefined for none. */
export function encodeBody(call: CallChange | undefined): string | undefined {
  if (call?.op !== 'add' || !call.body) return undefined;
  const { contentType, bytes } = call.body;
  return JSON.stringify({
    body_id: call.bodyId,
    content_type: contentType,
    base64: bytes.toString('base64'),
  });
}

/** A change of a call as the JSON that the append function reads. */
export function encodeCall(call: CallChange): string {
  switch (call.op) {
    case 'add': {
      const { op, serviceId, jobIndex, bodyId, network, symbol, caller, payment, delayMs } = call;
      return JSON.stringify({
        op,
        service_id: serviceId,
        job_index: jobIndex,
        body_id: bodyId,
        network,
        symbol,
        caller,
        payment,
        delay_ms: delayMs,
      });
    }
    case 'release':
    case 'watch':
    case 'remove':
    case 'suspend':
    case 'mark_unpaid':
    case 'requeue':
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
