import { z } from 'zod';
import type { ReceiptState } from '../../../payments/rules/quote-state.ts';
import type { RefundRequestState } from '../../../payments/rules/refund.ts';
import { maxWaitSecs } from '../../use-cases/follow-receipt.ts';
import { logProofs } from '../../../audit/http/schemas/log.ts';
import { paymentSummary } from '../../../payments/http/payment.ts';
import {
  address,
  atoms,
  callId,
  contentType,
  hex32,
  jobIndex,
  network,
  quoteDigest,
  serviceId,
  time,
  url,
} from '../../../base/http/values.ts';

const unnamed = 'Absent for a recovered payment whose payer has not asked for delivery.';

const states = [
  'quoted',
  'authorized',
  'settling',
  'settlement_unknown',
  'settlement_failed',
  'settled',
  'enqueued',
  'delivered',
  'completed',
  'dead_lettered',
  'refused',
  'expired',
  'refunded',
] as const satisfies readonly ReceiptState[];

export const result = z.union([
  z.strictObject({ content_type: contentType, body_base64: z.base64() }),
  z
    .strictObject({
      content_type: contentType,
      bytes: z.int(),
      sha256: hex32.describe('Of its bytes, as the ledger has it.'),
      url: url.describe('Where its bytes are, for the same receipt token.'),
    })
    .describe('A large result, which is fetched by itself.'),
]);

const refundRequest = z.strictObject({
  state: z
    .enum([
      'open',
      'due',
      'granted',
      'declined',
      'delivered',
      'refunded',
    ] as const satisfies readonly RefundRequestState[])
    .describe(
      '`open`: an operator decides. `due` and `granted`: the refund is due. `delivered`: the call was delivered after the request.',
    ),
  requested_at: time,
  decided_at: time.optional(),
  reason: z
    .string()
    .optional()
    .describe('What the payer wrote. Only with the receipt token, and until it is deleted.'),
  why: z.string().optional().describe('Why an operator declined. Only with the receipt token.'),
});

export const receipt = z
  .strictObject({
    quote_digest: quoteDigest,
    state: z.enum(states),
    paid: z.boolean().nullable().describe('Whether money moved; null while the outcome is unknown.'),
    service_id: serviceId.optional().describe(unnamed),
    job_index: jobIndex.optional().describe(unnamed),
    quote_expires_at: time.optional().describe('Absent for a recovered payment: its quote is lost.'),
    call_id: callId.optional(),
    payment: paymentSummary.optional(),
    refunds: z
      .array(z.strictObject({ amount: atoms, transaction: hex32, at: time }))
      .optional()
      .describe(
        'What was refunded of the payment, in order; absent if nothing was. The state is `refunded` once that is all of it.',
      ),
    refund_request: refundRequest
      .optional()
      .describe('What its payer has asked for, and what became of it; absent if it did not ask.'),
    events: z
      .array(
        z.strictObject({
          type: z
            .string()
            .regex(/^[a-z_]+$/)
            .meta({ description: 'Later versions may add types.', examples: ['payment_settled'] }),
          at: time,
        }),
      )
      .describe('All events of the quote, in order.'),
    log_proof: logProofs
      .nullable()
      .optional()
      .describe(
        'Proofs that the events about the settlement are in the log, up to a signed tree head; null until there are some, and `log_proof_reason` says why. Absent if the ledger is not sealed.',
      ),
    log_proof_reason: z
      .enum(['not_settled', 'not_sealed'])
      .optional()
      .describe('`not_sealed`: the next tree head covers the settlement; read the receipt again.'),
    progress: z
      .strictObject({ fraction: z.number().optional(), message: z.string().optional(), at: time })
      .optional()
      .describe('What the runner last said of the call while it works on it. Only with the receipt token.'),
    callback: z
      .strictObject({
        state: z.enum(['waiting', 'due', 'delivered', 'given_up']),
        tries: z.int(),
        last_failure: z.string().optional(),
        at: time.optional().describe('When the last message was delivered or given up.'),
        secret: z.string().describe('As `callback_secret` of the 202.'),
      })
      .optional()
      .describe('What became of the callback that the paid request named. Only with the receipt token.'),
    result: result
      .nullable()
      .optional()
      .describe("The runner's result; null until there is one. Only with the receipt token."),
    result_pruned: z
      .literal(true)
      .optional()
      .describe(
        'There was a result, and the gateway has deleted it: its configured life has ended, or it was erased.',
      ),
    result_pruned_at: time.optional().describe('When it was deleted.'),
    result_altered: z
      .literal(true)
      .optional()
      .describe(
        'What is stored is not the result whose hash the ledger has: it is not shown. Tell the operator.',
      ),
  })
  .describe('The state of a quote, its payment and its call.');
export type Receipt = z.infer<typeof receipt>;

export const receiptQuery = z.object({
  wait_secs: z.coerce
    .number()
    .int()
    .min(0)
    .max(maxWaitSecs)
    .optional()
    .describe(
      'How long the answer may wait for the end of the call, of its payment or of the quote; 0 by default, and 60 for an event stream. It comes immediately if there is nothing to wait for.',
    ),
});

const signed = z
  .strictObject({
    challenge: hex32,
    expires_at: z.int().min(0),
    signature: z
      .string()
      .max(10_000)
      .describe("The payer's EIP-712 signature, or that of its contract (ERC-1271)."),
  })
  .describe('The `challenge` and `expires_at` of the 401, and the signature over its `typed_data`.');

export const receiptTokenBody = z.strictObject({ signed: signed.optional() });

export const paymentTokenBody = z.strictObject({
  payment: z
    .strictObject({ network, asset: address, payer: address, nonce: hex32 })
    .describe('The signed payment, as its payload names it; lower case.'),
  signed: signed.optional(),
});

/** Control characters, separators of lines, and halves of characters. */
const notInLine = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

export const refundRequestBody = z.strictObject({
  reason: z
    .string()
    .max(500)
    .refine((text) => /\S/.test(text) && !notInLine.test(text), 'must be one line without control characters')
    .describe('Why you want your money back: one line, without control characters.'),
  signature: z
    .string()
    .max(10_000)
    .describe(
      "The payer's EIP-712 signature, or that of its contract (ERC-1271), over the type `RefundRequest` with this reason.",
    ),
});

export const requestedRefund = z
  .strictObject({ quote_digest: quoteDigest, refund_request: refundRequest, receipt_url: url })
  .describe('A refund that its payer has asked for.');
export type RequestedRefund = z.infer<typeof requestedRefund>;

export const receiptToken = z
  .strictObject({
    quote_digest: quoteDigest,
    receipt_token: z.string().describe('Gives access to the result on the receipt.'),
    receipt_url: url,
  })
  .describe('The token of a receipt.');
export type ReceiptToken = z.infer<typeof receiptToken>;

/** Of a refusal that asks for the payer's signature. */
export const receiptChallenge = {
  challenge: hex32,
  expires_at: z.int().describe('Until when a signature is accepted, in Unix seconds.'),
  typed_data: z
    .record(z.string(), z.unknown())
    .describe('What the payer signs: EIP-712 typed data with the type `ReceiptRequest`.'),
};
