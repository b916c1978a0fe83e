import type { RotatingSecret } from '../rotating-secret.ts';
import { isCallId, isLeaseId } from './lease-messages.ts';
import { openMessage, sealMessage } from './sealed-message.ts';

/** The outcome of a call, from its runner to the gateways. The lease is the fencing token. */
export interface ResultMessage {
  readonly callId: number;
  readonly leaseId: string;
  readonly outcome: ReportedOutcome;
}

export type ReportedOutcome =
  | {
      readonly kind: 'completed';
      /** Undefined if there is no result. */
      readonly contentType: string | undefined;
      /** What it costs; undefined if that was not said. */
      readonly price: string | undefined;
      readonly body: Buffer;
    }
  | {
      readonly kind: 'failed';
      readonly error: string;
      /** Whether the call is delivered again; a dead letter otherwise. */
      readonly retry: boolean;
      readonly retryAfterSecs: number;
    };

export function sealResult(secret: string, { callId, leaseId, outcome }: ResultMessage): Buffer {
  const call = { call_id: callId, lease_id: leaseId };
  if (outcome.kind === 'completed') {
    const type = outcome.contentType === undefined ? {} : { content_type: outcome.contentType };
    const price = outcome.price === undefined ? {} : { price: outcome.price };
    return sealMessage('result', secret, { ...call, outcome: 'completed', ...type, ...price }, outcome.body);
  }
  const { error, retry, retryAfterSecs } = outcome;
  const failure = { error, retry, retry_after_secs: retryAfterSecs };
  return sealMessage('result', secret, { ...call, outcome: 'failed', ...failure });
}

/** Undefined for a message that no runner with one of these tokens sent. */
export function openResult(secret: RotatingSecret, message: Uint8Array): ResultMessage | undefined {
  const opened = openMessage('result', secret, message);
  if (!opened) return undefined;
  const {
    call_id: callId,
    lease_id: leaseId,
    outcome,
    content_type: type,
    price: cost,
    ...failure
  } = opened.facts;
  if (!isCallId(callId) || !isLeaseId(leaseId)) return undefined;
  if (outcome === 'completed') {
    const contentType = typeof type === 'string' && /^[\x20-\x7e]{1,200}$/.test(type) ? type : undefined;
    const price = typeof cost === 'string' ? cost : undefined;
    return { callId, leaseId, outcome: { kind: 'completed', contentType, price, body: opened.body } };
  }
  const { error, retry, retry_after_secs: after } = failure;
  if (outcome !== 'failed' || typeof error !== 'string' || typeof retry !== 'boolean') return undefined;
  const retryAfterSecs = typeof after === 'number' && after > 0 ? Math.min(after, 86_400) : 0;
  return { callId, leaseId, outcome: { kind: 'failed', error, retry, retryAfterSecs } };
}
