import { type ReceivedCall, readCall } from './call.ts';
import { pause } from '../base/runtime/pause.ts';

/** A call that this runner has leased. */
export interface Lease {
  readonly callId: number;
  readonly leaseId: string;
  /** Undefined when its metadata is invalid. */
  readonly call: ReceivedCall | undefined;
  readonly expiresAt: unknown;
}

/** Reads the answer to a lease request; undefined if it is not one. */
export function readLeases(answer: unknown): Lease[] | undefined {
  const calls = isRecord(answer) ? answer['calls'] : undefined;
  if (!Array.isArray(calls)) return undefined;
  const leases = calls.map(readLease);
  return leases.every((lease) => lease !== undefined) ? leases : undefined;
}

function readLease(value: unknown): Lease | undefined {
  if (!isRecord(value)) return undefined;
  const { call_id: callId, lease_id: leaseId, lease_expires_at: expiresAt } = value;
  if (typeof callId !== 'number' || typeof leaseId !== 'string') return undefined;
  return { callId, leaseId, expiresAt, call: readLeasedCall(callId, value) };
}

function readLeasedCall(callId: number, value: Record<string, unknown>): ReceivedCall | undefined {
  const {
    metadata,
    content_type: type,
    body_base64: body,
    attempt,
    service_id,
    job_index,
    traceparent,
  } = value;
  if (!isRecord(metadata) || typeof body !== 'string') return undefined;
  // the fields next to the map hold the same values, and decide
  const ids = {
    'x-net-call-id': String(callId),
    'x-net-attempt': String(attempt),
    'x-net-service-id': String(service_id),
    'x-net-job-index': String(job_index),
  };
  const contentType = typeof type === 'string' ? type : undefined;
  return readCall({ ...metadata, ...ids }, contentType, Buffer.from(body, 'base64'), traceparent);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * How long a lease lasts from now, by the gateway's clock if its answer has one, so that a runner whose clock is
 * wrong does not lose its leases. Never longer than requested.
 */
export function leaseMs(expiresAt: unknown, serverTimeMs: number | undefined, requestedSecs: number): number {
  const requestedMs = requestedSecs * 1_000;
  const endsAt = typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN;
  if (Number.isNaN(endsAt) || serverTimeMs === undefined) return requestedMs;
  return Math.min(requestedMs, Math.max(endsAt - serverTimeMs - dateStepMs, leastMs));
}

const leastMs = 100;
/** The header `Date` has whole seconds: the gateway's clock may be ahead of it by up to this. */
const dateStepMs = 1_000;

/** What became of one attempt to extend a lease. */
export type Extension =
  | { readonly kind: 'held'; readonly lastsMs: number }
  /** No answer that says it: the lease may still be valid, and only the gateway decides that it is lost. */
  | { readonly kind: 'again' }
  | { readonly kind: 'lost'; readonly reason: string };

interface LeaseToKeep {
  /** How long it lasts now. */
  readonly firstMs: number;
  extend(timeoutMs: number): Promise<Extension>;
  onLost(reason: string): void;
}

const longestRetryMs = 5_000;

/** Extends a lease well before it ends, again and again, until `done` or it is lost. */
export async function keepLease({ firstMs, extend, onLost }: LeaseToKeep, done: AbortSignal): Promise<void> {
  let lastsMs = firstMs;
  let waitMs = lastsMs / 3;
  while (await pause(waitMs, done)) {
    const extension = await extend(Math.max(1_000, lastsMs / 3));
    // the outcome may have been reported meanwhile: then the lease has ended because the call is done
    if (done.aborted) return;
    if (extension.kind === 'lost') return onLost(extension.reason);
    if (extension.kind === 'held') lastsMs = extension.lastsMs;
    waitMs = extension.kind === 'held' ? lastsMs / 3 : Math.min(lastsMs / 6, longestRetryMs);
  }
}
