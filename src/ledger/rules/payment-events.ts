import { z } from 'zod';
import { signedApproval } from '../../base/values/gas-sponsoring.ts';
import { topUpOrderForm } from '../../base/values/top-up-order.ts';
import { authModes } from '../../base/values/job.ts';
import { identifierForm } from '../../base/values/payment-identifier.ts';
import { changesQuote, type EventFamily, recordOnly } from './descriptor.ts';
import {
  address,
  blockTime,
  count,
  hex32,
  hexBytes,
  micros,
  ofJob,
  ofPayment,
  ofTransfer,
  operatorText,
  operatorName,
  reason,
  settlementTerms,
  uint256,
} from './fields.ts';

const signedPayment = z.strictObject({
  x402_version: z.union([z.literal(1), z.literal(2)]),
  ...settlementTerms,
  payer: address,
  nonce: hex32,
  valid_after: uint256,
  valid_before: uint256,
  signature: hexBytes,
  max_timeout_secs: count,
});
export type SignedPaymentData = z.infer<typeof signedPayment>;

/** A way to pay a quote; if the job sells credit, with the credit. */
const settlementOption = z.strictObject({ ...settlementTerms, credit_micros: micros.optional() });
export type OptionData = z.infer<typeof settlementOption>;

/** The call of a settlement that did not stand: withdrawn, or kept because a runner has it already. */
const callOutcome = z.enum(['withdrawn', 'kept']);

const facilitatorName = z.string().regex(/^[\x21-\x7e]{1,255}$/);

const unpaidQuote = { of: 'unpaid_quote' } as const;
/** Anyone can land a payment: one that nothing settles, and one whose settlement was reported as failed. */
const unsettled = ['authorized', 'settling', 'settlement_unknown', 'settlement_failed'] as const;
const undecided = ['settling', 'settlement_unknown'] as const;
const settled = ['settled'] as const;

/** The events of a quote's stream up to its settlement, and those that change a settlement afterwards. */
export const paymentEvents = {
  quote_issued: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofJob,
      price_wei: uint256,
      /**
       * In their order. An option that is only a hash was not known to the gateway: the quote was recorded when it was paid by
       * another one, from the offer that its payer echoed.
       */
      options: z.array(z.union([settlementOption, hex32])).min(1),
      requester: address,
      inputs_hash: hex32,
      issued_at: count,
      expires_at: count,
      salt: hex32,
      /** A `quotes_issued` counted it: the quote was summarised, and recorded when it was paid. */
      summarised: z.literal(true).optional(),
      /** Which service issued it; absent for a 402 answer. Not part of the quote's digest. */
      source: z.literal('pricing').optional(),
    }),
    transition: { of: 'quote' },
    quoteState: 'changes',
    bookkeeping: 'context',
    reconciliation: 'needed',
    counters: ['quoted'],
  },
  payment_verified: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPayment,
      by: z.enum(['facilitator', 'signature', 'chain']),
      /**
       * The payer's own key did not sign: its contract says that it did (ERC-1271), or, if the gateway cannot ask the chain, the
       * facilitator. Absent: the signature in `settlement_started` recovers to the payer.
       */
      signed_by: z.literal('contract').optional(),
    }),
    transition: unpaidQuote,
  },
  auth_passed: {
    ...recordOnly,
    schema: z.strictObject({
      caller: address,
      mode: z.enum(authModes),
      /** SHA-256 of the nonce, which is free text of a caller. */
      caller_nonce_sha256: hex32.optional(),
    }),
    transition: unpaidQuote,
    uniqueness: 'claims',
  },
  settlement_started: {
    ...changesQuote,
    schema: z.strictObject({
      request_id: z.uuid(),
      /** Hash of the request that the payment pays for: method, path, body, caller, caller nonce, and the callback if the request names one. */
      binding: hex32,
      body_sha256: hex32,
      /** Of the body, or of what else the price was asked for, if the quote is for one request: it equals the quote's `inputs_hash`. */
      body_keccak256: hex32.optional(),
      body_bytes: count,
      payment: signedPayment,
      /** The payer's own id for this payment, if it gave one: unique like its nonce. */
      payment_id: z.string().regex(identifierForm).optional(),
      /** The body of a top-up that names the account of its credit; its SHA-256 is the payment's nonce. */
      top_up_order: z.string().regex(topUpOrderForm).optional(),
      /** Its upstream is asked first; by this time, in Unix seconds, it has answered, or the process that asks is gone. */
      upstream: z.strictObject({ ends_at: count }).optional(),
      /** The only facilitator that is asked to settle it: its name in `[[facilitators]]`. Absent where there is only one, or it had landed. */
      facilitator: facilitatorName.optional(),
      /** The payer's approval of Permit2, which the facilitator submits and pays for: it needs it again to settle the payment again. */
      approval: signedApproval.optional(),
    }),
    transition: unpaidQuote,
    uniqueness: 'claims',
    bookkeeping: 'context',
  },
  /** The process that asked the upstream is gone, and its answer with it: another attempt asks again, with the same idempotency key. */
  upstream_repeated: {
    ...recordOnly,
    schema: z.strictObject({ ...ofPayment, attempt: count, ends_at: count }),
    transition: { of: 'payment', from: ['authorized'] },
    quoteState: 'changes',
  },
  /** The upstream's whole answer is stored: its payment is settled, and then the answer is released. */
  upstream_answered: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPayment,
      attempt: count,
      http_status: count,
      head_sha256: hex32,
      result_sha256: hex32,
      result_bytes: count,
      /** Of a payment by `upto`: the atoms that were used, at least one and at most the signed amount. */
      used: uint256.optional(),
    }),
    transition: { of: 'payment', from: ['authorized'], to: 'settling' },
    quoteState: 'changes',
    reconciliation: 'needed',
    readModels: ['payments'],
  },
  payer_mismatch: {
    ...recordOnly,
    schema: z.strictObject({ ...ofPayment, settled_payer: address }),
    transition: { of: 'payment', from: unsettled },
    followUps: ['alert'],
  },
  settlement_unknown: {
    ...changesQuote,
    schema: z.strictObject({ ...ofPayment, reason, transaction: hex32.optional() }),
    transition: { of: 'payment', from: unsettled, to: 'settlement_unknown' },
    bookkeeping: 'context',
    reopens: 'after_failure',
    counters: ['settlement_unknown'],
  },
  settlement_failed: {
    ...changesQuote,
    schema: z.strictObject({ ...ofPayment, reason }),
    transition: { of: 'payment', from: unsettled, to: 'settlement_failed' },
    uniqueness: 'releases',
    bookkeeping: 'context',
    counters: ['settlement_failed'],
    followUps: ['reverse_top_up'],
  },
  payment_settled: {
    ...changesQuote,
    schema: z.strictObject({
      ...ofPayment,
      amount: uint256,
      transaction: hex32,
      /** With evidence `operator`, an `operator_settlement_resolved` is appended with it. */
      evidence: z.enum(['facilitator', 'chain', 'operator']),
      block_number: uint256.optional(),
      block_hash: hex32.optional(),
      block_time: blockTime,
      log_index: count.optional(),
    }),
    transition: { of: 'payment', from: unsettled, to: 'settled' },
    uniqueness: 'claims',
    bookkeeping: 'posts',
    reopens: 'after_failure',
    counters: ['settled'],
    followUps: ['confirm'],
  },
  /** The chain shows the transfer that a facilitator had reported: from here on the payment is proven. */
  settlement_confirmed: {
    ...changesQuote,
    schema: z.strictObject({ ...ofPayment, ...ofTransfer }),
    transition: { of: 'payment', from: settled },
    uniqueness: 'claims',
    bookkeeping: 'posts',
    followUps: ['confirm'],
  },
  settlement_disproved: {
    ...changesQuote,
    schema: z.strictObject({ ...ofPayment, transaction: hex32, reason, call: callOutcome }),
    transition: { of: 'payment', from: settled, to: 'settlement_unknown' },
    bookkeeping: 'posts',
    reopens: 'always',
    counters: ['settlement_disproved'],
    followUps: ['resolve', 'alert'],
  },
  settlement_reorged: {
    ...changesQuote,
    schema: z.strictObject({
      ...ofPayment,
      transaction: hex32,
      block_number: uint256,
      block_hash: hex32,
      call: callOutcome,
    }),
    transition: { of: 'payment', from: settled, to: 'settlement_unknown' },
    uniqueness: 'releases',
    bookkeeping: 'posts',
    reopens: 'always',
    counters: ['settlement_reorged'],
    followUps: ['resolve', 'alert'],
  },
  settlement_overdue: {
    ...recordOnly,
    schema: z.strictObject({ ...ofPayment, age_secs: count, reason }),
    transition: { of: 'payment', from: undecided },
    quoteState: 'changes',
    followUps: ['alert'],
  },
  operator_settlement_resolved: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPayment,
      paid: z.boolean(),
      transaction: hex32.optional(),
      evidence: operatorText,
      operator: operatorName,
    }),
    transition: { of: 'payment', from: undecided },
  },
  /**
   * A transfer returned the payment, or a part of it, from the payee or another account of the operator. It stays settled. All refunds of a
   * payment together are at most its amount.
   */
  /** Also of a payment that was taken back after this refund was started. */
  refunded: {
    ...changesQuote,
    schema: z.strictObject({
      ...ofPayment,
      amount: uint256,
      refunded_from: address,
      refunded_to: address,
      /** Why it went to another address than the payer's; absent if it went to the payer. */
      evidence: operatorText.optional(),
      ...ofTransfer,
      operator: operatorName,
    }),
    transition: { of: 'payment', from: ['settled', 'settlement_unknown', 'settlement_failed'] },
    uniqueness: 'claims',
    bookkeeping: 'posts',
    reopens: 'always',
    followUps: ['reverse_top_up'],
  },
} as const satisfies EventFamily;
