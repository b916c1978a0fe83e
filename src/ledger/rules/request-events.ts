import { z } from 'zod';
import { authModes } from '../../base/values/job.ts';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import { address, count, hex32, ofJob, ofPayment, reason } from './fields.ts';

/** One trial of a job's authorization; `code` says why it was not allowed. */
const dryRun = z.strictObject({
  ...ofJob,
  mode: z.enum(authModes).optional(),
  caller: address.optional(),
  code: reason.optional(),
});

/** The refusals that a client over its budget, a full lane, or strangers beyond the allowance of a kind leave as sums. */
const summedRefusals = [
  'payment_rejected',
  'request_refused',
  'auth_denied',
  'payment_replay_denied',
  'nonce_replay_denied',
  'enqueue_failed',
  'dry_run_allowed',
  'dry_run_denied',
  'dry_run_error',
  'chat_refused',
  'sign_in_refused',
  'operator_sign_in_refused',
] as const;
export type SummedRefusal = (typeof summedRefusals)[number];

/** Requests that were refused, in separate streams; a caller can also be refused in its quote's stream. */
export const requestEvents = {
  /** Refusals of about one second that have no separate event; each counts as an event of its type. */
  refusals_counted: {
    ...recordOnly,
    schema: z.strictObject({ counts: z.partialRecord(z.enum(summedRefusals), count.min(1)) }),
    transition: note,
  },
  /**
   * Unpaid quotes of about one second and one gateway that have no separate event; each counts as a `quote_issued`. The root
   * is that of the RFC 6962 tree over their digests (32 bytes each) in the order in which they were issued.
   */
  quotes_issued: {
    ...recordOnly,
    schema: z.strictObject({
      quotes: z.array(z.strictObject({ ...ofJob, count: count.min(1) })).min(1),
      root: hex32,
    }),
    transition: note,
  },
  /** A payment was refused before any uniqueness claim was taken. */
  payment_rejected: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofJob,
      stage: z.enum(['decode', 'match', 'shape', 'verify']),
      reason,
      quote_digest: hex32.optional(),
      payer: address.optional(),
    }),
    transition: note,
  },
  request_refused: {
    ...recordOnly,
    schema: z.strictObject({
      code: reason,
      service_id: count.optional(),
      job_index: count.optional(),
      quote_digest: hex32.optional(),
    }),
    transition: note,
  },
  auth_denied: {
    ...recordOnly,
    schema: z.strictObject({
      code: reason,
      ...ofJob,
      caller: address.optional(),
      quote_digest: hex32.optional(),
    }),
    transition: note,
    quoteState: 'changes',
    counters: ['denied'],
  },
  /** The payment, its quote or its payment identifier was used before, for another request. */
  payment_replay_denied: {
    ...recordOnly,
    schema: z.strictObject({
      claim: z.enum(['payment', 'quote', 'payment_identifier']),
      ...ofPayment,
      // a version 1 payment names no asset
      asset: address.optional(),
      quote_digest: hex32.optional(),
    }),
    transition: note,
    counters: ['replay_denied', 'payment_replay_denied'],
  },
  /** The caller's nonce was used before, by another payment. */
  nonce_replay_denied: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPayment,
      quote_digest: hex32,
      ...ofJob,
      caller: address,
      /** SHA-256 of the nonce, as in `auth_passed`. */
      caller_nonce_sha256: hex32,
      /** The quote of that other payment, whose stream it names; absent if an earlier version recorded it. */
      used_by_quote: hex32.optional(),
    }),
    transition: note,
    counters: ['replay_denied', 'nonce_replay_denied'],
  },
  enqueue_failed: {
    ...recordOnly,
    schema: z.strictObject({ reason, ...ofJob, quote_digest: hex32.optional() }),
    transition: note,
    counters: ['enqueue_failed'],
  },
  dry_run_allowed: {
    ...recordOnly,
    schema: dryRun,
    transition: note,
    counters: ['dry_run', 'dry_run_allowed'],
  },
  dry_run_denied: {
    ...recordOnly,
    schema: dryRun,
    transition: note,
    counters: ['dry_run', 'dry_run_denied'],
  },
  dry_run_error: {
    ...recordOnly,
    schema: dryRun,
    transition: note,
    counters: ['dry_run', 'dry_run_error'],
  },
} as const satisfies EventFamily;
