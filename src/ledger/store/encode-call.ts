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
      const { order } = call;
      return JSON.stringify({
        ...asColumns(call, [
          ...ofNewCall,
          'network',
          'asset',
          'symbol',
          'caller',
          'payment',
          'idempotencyKey',
          'delayMs',
        ]),
        order_key: order?.key,
        key_limit: order?.limit,
        keeps_key: order?.keepsPlace,
        key_failures: order?.maxFailures,
        claims: kept.length > 0 ? kept : undefined,
      });
    }
    case 'enqueue': {
      const { kind, name, id } = call.trigger;
      const trigger = { trigger_kind: kind, trigger_name: name, trigger_id: id };
      return JSON.stringify({
        ...asColumns(call, [...ofNewCall, 'newCallId']),
        payment: call.idempotencyKey,
        ...trigger,
      });
    }
    case 'complete':
    case 'check':
      return JSON.stringify(asColumns(call, ofLease));
    case 'lease':
      return JSON.stringify(asColumns(call, [...ofLease, 'delayMs']));
    case 'dead_letter':
      return JSON.stringify(asColumns(call, [...ofLease, ...ofFailure]));
    case 'retry':
    case 'return_lease':
      return JSON.stringify(asColumns(call, [...ofLease, ...ofFailure, 'delayMs']));
    default:
      return JSON.stringify(asColumns(call, ['op', 'callId']));
  }
}

const ofNewCall = ['op', 'serviceId', 'jobIndex', 'bodyId', 'traceparent'] as const;
const ofLease = ['op', 'callId', 'leaseId'] as const;
const ofFailure = ['reason', 'runner', 'error'] as const;

/** Members under the names that columns have. */
function asColumns<Of extends object>(of: Of, names: readonly (keyof Of & string)[]) {
  return Object.fromEntries(
    names.map((name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), of[name]]),
  );
}
