import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import type { SummedRefusal } from '../../ledger/rules/request-events.ts';
import { type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import type { AuthMode, JobId } from '../../base/values/job.ts';
import { ofPayment, type SignedPayment } from '../../payments/rules/payment.ts';
import { sha256 } from '../../base/values/sha256.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import type { Job } from './catalog.ts';
import type { NamedQuote } from '../../payments/rules/quote-token.ts';
import type { OpenedRequest } from './job-request.ts';

/** An event of a refusal, which is summed instead if it must not be recorded alone. */
type RefusalEvent = Extract<LedgerEvent, { readonly type: SummedRefusal }>;

/** What the ledger keeps of a refusal, and in which stream. */
export type RefusalRecord =
  /** Nothing: the lost append has recorded it. */
  | { readonly kind: 'none' }
  /** Never a separate event: that would fill the ledger at no cost to the client. */
  | { readonly kind: 'summed'; readonly type: SummedRefusal }
  | {
      readonly kind: 'in_request';
      readonly event: RefusalEvent;
      /** What the request had passed before: recorded with it, and in no sum. */
      readonly passed?: Extract<LedgerEvent, { type: 'auth_passed' }> | undefined;
    }
  /** In the quote's stream if that still has this version, else in the request's. */
  | {
      readonly kind: 'in_quote';
      readonly event: RefusalEvent;
      readonly digest: Hex;
      readonly version: number;
    };

interface RefusalBase {
  readonly kind: 'refusal';
  readonly record: RefusalRecord;
}

/** The codes that are answered with 402 and a new quote. */
export type OfferCode =
  | 'payment_required'
  | 'payment_invalid'
  | 'wallet_not_deployed'
  | 'quote_expired'
  | 'quote_ended';

/** Answered with a new quote for the job. */
export interface OfferRefusal extends RefusalBase {
  readonly code: OfferCode;
  /** `inputsHash`: of the request that its price is for alone; left out, the price is for any. */
  readonly job: Job & { readonly inputsHash?: Hex };
  /** Why the payment was rejected, or the quote that the request names is not offered: a machine-readable code. */
  readonly reason?: string;
  /** The recorded quote that is offered in place of a new one. */
  readonly named?: NamedQuote;
}

/** Answered with an error. */
export interface ErrorRefusal extends RefusalBase {
  readonly code: Exclude<RefusalCode, OfferCode>;
  readonly retryAfterSecs?: number;
  /** For the log: a machine-readable reason of a 503. */
  readonly reason?: string;
  /** What exactly is wrong, line by line. */
  readonly details?: readonly string[];
}

/**
 * A refused request on its way up. Nothing is recorded, charged or answered before it reaches `answerRefusal`, so that a
 * step above may still answer otherwise.
 */
export type JobRefusal = OfferRefusal | ErrorRefusal;

interface RefusalFacts {
  readonly digest?: Hex;
  readonly reason?: string;
  readonly details?: readonly string[];
}

export function refusal(
  { job }: OpenedRequest,
  code: ErrorRefusal['code'],
  { digest, ...told }: RefusalFacts = {},
): ErrorRefusal {
  const data: EventData<'request_refused'> = {
    code,
    ...(job ? { service_id: job.serviceId, job_index: job.jobIndex } : {}),
    ...(digest ? { quote_digest: digest } : {}),
  };
  return { ...inRequest(code, { type: 'request_refused', data }), ...told };
}

/** Recorded in the stream of the request. */
function inRequest(code: ErrorRefusal['code'], event: RefusalEvent): ErrorRefusal {
  return { kind: 'refusal', code, record: { kind: 'in_request', event } };
}

/** Refused, and recorded already. */
export function unrecordedRefusal(code: ErrorRefusal['code']): ErrorRefusal {
  return { kind: 'refusal', code, record: { kind: 'none' } };
}

/** A client over its budget: its refusal becomes part of a sum, never a separate event. */
export function rateLimited(retryAfterSecs: number): ErrorRefusal {
  const record: RefusalRecord = { kind: 'summed', type: 'request_refused' };
  return { kind: 'refusal', code: 'rate_limited', record, retryAfterSecs };
}

/** Not a rejected payment but none at all, or one whose failure is on record already. */
export function offerRefusal(job: Job, code: OfferCode, reason?: string): OfferRefusal {
  const why = reason === undefined ? {} : { reason };
  return { kind: 'refusal', code, job, record: { kind: 'none' }, ...why };
}

type Rejection = Pick<EventData<'payment_rejected'>, 'stage' | 'reason' | 'quote_digest' | 'payer'>;

/** A payment that was not accepted. The money was not touched, so the payer may sign another. */
export function rejectedPayment(
  job: Job,
  why: Rejection,
  code: Exclude<OfferCode, 'payment_required'> = 'payment_invalid',
): OfferRefusal {
  const data = { service_id: job.serviceId, job_index: job.jobIndex, ...why };
  const record: RefusalRecord = { kind: 'in_request', event: { type: 'payment_rejected', data } };
  return { ...offerRefusal(job, code, why.reason), record };
}

/** A known payment sent with another request. Its own stream is not touched: nothing proves who sent it this time. */
export function paymentReplay({ network, payer, nonce, terms }: DecodedPayment): ErrorRefusal {
  const event: RefusalEvent = {
    type: 'payment_replay_denied',
    data: {
      claim: 'payment',
      network,
      ...(terms ? { asset: terms.asset } : {}),
      payer,
      payment_nonce: nonce,
      ...(terms?.quoteDigest ? { quote_digest: terms.quoteDigest } : {}),
    },
  };
  return inRequest('payment_replay', event);
}

/** A nonce is used once by its caller on a job. */
interface UsedNonce {
  readonly job: JobId;
  readonly caller: Address;
  readonly nonce: string;
  /** The quote whose payment has used it. */
  readonly usedBy: string;
}

/** A caller's nonce that another payment has used. */
export function callerNonceReplay(
  digest: Hex,
  payment: SignedPayment,
  { job, caller, nonce, usedBy }: UsedNonce,
): ErrorRefusal {
  return inRequest('signature_replay', {
    type: 'nonce_replay_denied',
    data: {
      ...ofPayment(payment),
      quote_digest: digest,
      service_id: job.serviceId,
      job_index: job.jobIndex,
      caller,
      caller_nonce_sha256: sha256(nonce),
      used_by_quote: usedBy,
    },
  });
}

interface DeniedCaller {
  readonly digest: Hex;
  readonly caller?: Address;
  /** The version of the quote's stream, if the payment was verified before the caller was refused. */
  readonly version?: number;
}

/** A caller who may not call, or whose permission could not be checked. */
export function callerDenied(
  request: OpenedRequest,
  job: Job,
  code: ErrorRefusal['code'],
  { digest, caller, version }: DeniedCaller,
): ErrorRefusal {
  if (refusals[code].status >= 500) return refusal(request, code, { digest });
  const { serviceId: service_id, jobIndex: job_index } = job;
  const data = { code, service_id, job_index, ...(caller ? { caller } : {}), quote_digest: digest };
  const event: RefusalEvent = { type: 'auth_denied', data };
  if (version === undefined) return inRequest(code, event);
  return { kind: 'refusal', code, record: { kind: 'in_quote', event, digest, version } };
}

/** A caller that is proven and permitted. */
export interface AuthorizedCaller {
  readonly mode: AuthMode;
  readonly address: Address;
  /** A delegated caller uses each nonce for one payment. */
  readonly nonce: string | undefined;
  /** From when on a delegated caller's signature is refused, in Unix seconds. */
  readonly expiry: number | undefined;
}

/** That a caller was authorized: in the stream of its payment, or of its request if that found no capacity. */
export function authPassed({ mode, address, nonce }: AuthorizedCaller) {
  const hashed = nonce === undefined ? {} : { caller_nonce_sha256: sha256(nonce) };
  return { type: 'auth_passed', data: { caller: address, mode, ...hashed } } as const;
}

/** The outbox or the lane is full, too many payments have no known outcome, or the gateway is shutting down. */
export function enqueueFailed(
  job: Job,
  digest: Hex,
  reason: 'stopping' | 'outbox_full' | 'too_many_unsettled' | 'too_many_unpaid_answers' | 'lane_full',
  caller?: AuthorizedCaller,
): ErrorRefusal {
  const data = { reason, service_id: job.serviceId, job_index: job.jobIndex, quote_digest: digest };
  const passed = caller && authPassed(caller);
  const record: RefusalRecord = { kind: 'in_request', event: { type: 'enqueue_failed', data }, passed };
  return { kind: 'refusal', code: 'enqueue_failed', reason, record };
}
