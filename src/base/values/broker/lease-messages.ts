import { openMessage, sealMessage, type SealedMessage } from './sealed-message.ts';
import { callToleranceSecs } from '../call-signature.ts';
import type { RotatingSecret } from '../rotating-secret.ts';

/**
 * A runner asks for a lease. A call comes with the lease of its message; the runner that takes it names a new one, which replaces it, so
 * that a second copy of the message leases the call to no runner. To extend a lease both are the same.
 */
export interface LeaseWish {
  readonly callId: number;
  readonly leaseId: string;
  readonly newLeaseId: string;
}

/** Wishes that came in one message. */
export interface LeaseRequest {
  /** Repeated in the answer, so that no other answer can be taken for it. */
  readonly nonce: string;
  /** When the runner sent it, in Unix seconds: an old request, repeated by others, extends no lease. */
  readonly atSecs: number;
  readonly leaseSecs: number;
  readonly wishes: readonly LeaseWish[];
}

export type LeaseGrant =
  /** The lease is the runner's for this long. */
  | { readonly kind: 'held'; readonly lastsMs: number }
  /** Another attempt has the call, or it is no longer needed. */
  | { readonly kind: 'lost' }
  /** The runner is paused: the call stays in the broker. */
  | { readonly kind: 'later' };

export const mostWishes = 100;
const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
const nonceForm = /^[0-9a-f-]{16,64}$/;

export function isLeaseId(value: unknown): value is string {
  return typeof value === 'string' && uuid.test(value);
}

export function isCallId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

export function sealLeaseRequest(secret: string, { nonce, atSecs, leaseSecs, wishes }: LeaseRequest): Buffer {
  const calls = wishes.map(({ callId, leaseId, newLeaseId }) => [callId, leaseId, newLeaseId]);
  return sealMessage('lease', secret, { nonce, at_secs: atSecs, lease_secs: leaseSecs, calls });
}

/** Undefined for a message other than a runner's present request. */
export function openLeaseRequest(
  secret: RotatingSecret,
  message: Uint8Array,
  nowSecs: number,
): LeaseRequest | undefined {
  const opened = openMessage('lease', secret, message);
  if (!opened) return undefined;
  const { nonce, at_secs: atSecs, lease_secs: leaseSecs, calls } = opened.facts;
  if (typeof nonce !== 'string' || !nonceForm.test(nonce)) return undefined;
  if (typeof atSecs !== 'number' || !(Math.abs(nowSecs - atSecs) <= callToleranceSecs)) return undefined;
  if (typeof leaseSecs !== 'number' || !Number.isInteger(leaseSecs) || leaseSecs < 5 || leaseSecs > 3_600)
    return undefined;
  if (!Array.isArray(calls) || calls.length > mostWishes) return undefined;
  const wishes = calls.map(readWish);
  return wishes.every((wish) => wish !== undefined) ? { nonce, atSecs, leaseSecs, wishes } : undefined;
}

function readWish(value: unknown): LeaseWish | undefined {
  if (!Array.isArray(value)) return undefined;
  const [callId, leaseId, newLeaseId] = value as readonly unknown[];
  return isCallId(callId) && isLeaseId(leaseId) && isLeaseId(newLeaseId)
    ? { callId, leaseId, newLeaseId }
    : undefined;
}

/** @param grants in the order of the wishes */
export function sealLeaseAnswer(
  secret: RotatingSecret,
  nonce: string,
  grants: readonly LeaseGrant[],
): Buffer {
  const listed = grants.map((grant) => (grant.kind === 'held' ? grant.lastsMs : grant.kind));
  return sealMessage('lease-answer', secret, { nonce, grants: listed });
}

/** The grants in the order of the wishes; undefined for a message other than the gateway's answer to this request. */
export function openLeaseAnswer(
  secret: string,
  { nonce, wishes }: LeaseRequest,
  message: Uint8Array,
): readonly LeaseGrant[] | undefined {
  const { facts }: Partial<SealedMessage> = openMessage('lease-answer', secret, message) ?? {};
  const listed = facts?.['grants'];
  if (!facts || facts['nonce'] !== nonce || !Array.isArray(listed) || listed.length !== wishes.length)
    return undefined;
  return listed.map((grant: unknown): LeaseGrant => {
    if (typeof grant === 'number') return { kind: 'held', lastsMs: grant };
    return { kind: grant === 'later' ? 'later' : 'lost' };
  });
}
