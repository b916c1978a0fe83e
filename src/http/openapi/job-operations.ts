import { paymentV1, paymentV2 } from '../schemas/payment.ts';
import { accepted, price } from '../schemas/job.ts';
import { receipt } from '../schemas/receipt.ts';
import { ifNoneMatch, notModified, type Operation } from './operation.ts';

export const priceOperation: Operation = {
  method: 'get',
  path: '/x402/jobs/{service_id}/{job_index}/price',
  id: 'getPrice',
  tag: 'Jobs',
  summary: 'What a job costs now',
  description: 'Issues no quote and writes nothing.',
  requestHeaders: [ifNoneMatch],
  answers: [{ status: 200, description: 'The price.', schema: price, headers: ['ETag'] }, notModified],
  refusals: ['x402_disabled', 'job_not_found'],
};

const paying = `Ask without a payment for a quote: the **402** carries it in x402 version 2 (\`PAYMENT-REQUIRED\`) and
in version 1 (its body). Sign one of the \`accepts\`, send the same request again with \`PAYMENT-SIGNATURE\`
(or \`X-PAYMENT\`), and the **202** says that the call is enqueued.

The same request with the same payment may be sent again at any time: it is answered from that payment, and pays
once. After a **503** \`settlement_pending\` do just that, and never sign another payment.

Everything that can refuse a request is settled before money moves: whoever is refused was not charged.`;

export const payOperation: Operation = {
  method: 'post',
  path: '/x402/jobs/{service_id}/{job_index}',
  id: 'payForJob',
  tag: 'Jobs',
  summary: 'Pay for a job',
  description: paying,
  requestHeaders: [
    {
      name: 'PAYMENT-SIGNATURE',
      description: 'The payment in x402 version 2: base64 of JSON.',
      json: paymentV2,
    },
    {
      name: 'X-PAYMENT',
      description: 'The payment in x402 version 1: base64 of JSON. Ignored beside `PAYMENT-SIGNATURE`.',
      json: paymentV1,
    },
  ],
  body: {
    bytes: true,
    description:
      "The job's input, given to its runner byte for byte. Some jobs say what they take: see `input`.",
  },
  answers: [
    {
      status: 202,
      description: 'Paid and enqueued.',
      schema: accepted,
      headers: ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'Location', 'Idempotent-Replayed'],
    },
  ],
  refusals: [
    'invalid_request',
    'invalid_content_type',
    'payment_required',
    'payment_invalid',
    'quote_expired',
    'x402_disabled',
    'job_not_found',
    'payment_replay',
    'quote_in_use',
    'body_too_large',
    'unsupported_media_type',
    'input_invalid',
    'rate_limited',
    'internal_error',
    'enqueue_failed',
    'overloaded',
    'facilitator_unavailable',
    'ledger_unavailable',
    'settlement_pending',
  ],
};

export const receiptOperation: Operation = {
  method: 'get',
  path: '/x402/receipts/{quote_digest}',
  id: 'getReceipt',
  tag: 'Jobs',
  summary: "A quote's story",
  description:
    "Anyone who knows the digest may read it; the `receipt_token` of the 202 also opens the runner's result.",
  security: 'receiptToken',
  answers: [{ status: 200, description: 'The receipt.', schema: receipt }],
  refusals: ['invalid_receipt_token', 'receipt_not_found', 'internal_error', 'ledger_unavailable'],
};
