import { paymentV1, paymentV2 } from '../schemas/payment.ts';
import type { RefusalCode } from '../../domain/errors/refusal.ts';
import { accepted, dryRunAllowed, dryRunRefusal, price } from '../schemas/job.ts';
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
  refusals: ['x402_disabled', 'job_not_found', 'facilitator_unavailable'],
};

const paying = `Ask without a payment for a quote: the **402** carries it in x402 version 2 (\`PAYMENT-REQUIRED\`) and
in version 1 (its body). Sign one of the \`accepts\`, send the same request again with \`PAYMENT-SIGNATURE\`
(or \`X-PAYMENT\`), and the **202** says that the call is enqueued.

The same request with the same payment may be sent again at any time: it is answered from that payment, and pays
once. After a **503** \`settlement_pending\` do just that, and never sign another payment.

Whoever may sign another payment for the same thing by mistake gives both one id of its own
(\`extensions["payment-identifier"].info.id\`, 16 to 128 characters): only one of them is taken.

Everything that can refuse a request is settled before money moves: whoever is refused was not charged.`;

const paymentHeaders = [
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
];

const callerHeaders = [
  { name: 'X-NET-CALLER', description: 'Of restricted jobs with delegated callers: the address that calls.' },
  {
    name: 'X-NET-CALLER-SIG',
    description:
      'Its signature (EIP-191 `personal_sign`, 65 bytes, low s) over `x402-authorize:{service_id}:{job_index}:{keccak256 of the body, hex without 0x}:{nonce}:{expiry}`.',
  },
  {
    name: 'X-NET-CALLER-NONCE',
    description: '1 to 128 visible ASCII characters, no colon. Good for one payment.',
  },
  { name: 'X-NET-CALLER-EXPIRY', description: 'Unix seconds.' },
];

/** What can speak against the caller of a restricted job. */
const callerRefusals = [
  'missing_caller',
  'invalid_caller',
  'missing_signature',
  'invalid_signature',
  'missing_signature_nonce',
  'invalid_signature_nonce',
  'missing_signature_expiry',
  'invalid_signature_expiry',
  'signature_expired',
  'signature_mismatch',
  'caller_not_permitted',
  'signature_replay',
  'permission_check_failed',
] as const satisfies readonly RefusalCode[];

export const dryRunOperation: Operation = {
  method: 'post',
  path: '/x402/jobs/{service_id}/{job_index}/auth-dry-run',
  id: 'dryRunAuthorization',
  tag: 'Jobs',
  summary: 'Try the authorization of a request',
  description: `Runs the checks of a restricted job on this request and tells each. Settles nothing, enqueues nothing, uses no
nonce up; also on a job that is still disabled. Where the payer is the caller, send the payment header, or \`X-NET-CALLER\`
alone, which is then only asserted.`,
  requestHeaders: [...paymentHeaders, ...callerHeaders],
  body: { bytes: true, description: 'The very body that the paid request will have.' },
  answers: [{ status: 200, description: 'It would be allowed.', schema: dryRunAllowed }],
  refusals: [
    'invalid_request',
    'payment_invalid',
    'x402_disabled',
    'job_not_found',
    'body_too_large',
    'rate_limited',
    'internal_error',
    'overloaded',
    'ledger_unavailable',
    ...callerRefusals,
  ],
  refusalContext: dryRunRefusal,
};

export const payOperation: Operation = {
  method: 'post',
  path: '/x402/jobs/{service_id}/{job_index}',
  id: 'payForJob',
  tag: 'Jobs',
  summary: 'Pay for a job',
  description: paying,
  requestHeaders: [...paymentHeaders, ...callerHeaders],
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
    'invalid_payment_identifier',
    'missing_payment_identifier',
    'payment_required',
    'payment_invalid',
    'quote_expired',
    'x402_disabled',
    'job_not_found',
    'payment_replay',
    'payment_identifier_conflict',
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
    ...callerRefusals,
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
