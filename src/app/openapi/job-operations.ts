import { z } from 'zod';
import { paymentV1, paymentV2 } from '../../payments/http/payment.ts';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import {
  accepted,
  catalogue,
  catalogueQuery,
  completed,
  dryRunAllowed,
  dryRunRefusal,
  payQuery,
  price,
  replayed,
  didDocument,
  wellKnown,
} from '../../jobs/http/schemas/job.ts';
import {
  paymentTokenBody,
  receipt,
  receiptQuery,
  receiptToken,
  receiptTokenBody,
  refundRequestBody,
  requestedRefund,
} from '../../jobs/http/schemas/receipt.ts';
import { walletQuery, walletReceipts } from '../../jobs/http/schemas/wallet.ts';
import { asOfHeaders } from './headers.ts';
import { ifNoneMatch, notModified, operations } from './operation.ts';

const paying = `A request without a payment gets a quote: the **402** carries it in x402 version 2 (\`PAYMENT-REQUIRED\`) and
in version 1 (its body). Sign one of the \`accepts\` and send the same request again with \`PAYMENT-SIGNATURE\`
(or \`X-PAYMENT\`). The **202** confirms that the call is enqueued.

The same request with the same payment may be repeated at any time: it is charged once, and the answer is that of the
first payment, if the payment echoes the \`offerSecret\` of its offer: everything else about a landed payment is public. Without
it, as in version 1, the answer is \`status\` alone, and the payer's signature gets the receipt and its token
(\`POST /x402/receipts/token\`). After a **503** \`settlement_pending\` repeat the request; never sign another payment.

A client that may sign a second payment by mistake gives both payments the same id
(\`extensions["payment-identifier"].info.id\`, 16 to 128 characters): only one of them is accepted.

Every check that can refuse a request runs before money moves: a refused request is not charged.`;

const paymentHeaders = [
  {
    name: 'PAYMENT-SIGNATURE',
    description: 'The payment in x402 version 2: base64 of JSON.',
    json: paymentV2,
  },
  {
    name: 'X-PAYMENT',
    description: 'The payment in x402 version 1: base64 of JSON. Ignored if `PAYMENT-SIGNATURE` is present.',
    json: paymentV1,
  },
];

const callerHeaders = [
  {
    name: 'X-NET-CALLER',
    description: "The caller's address, for restricted jobs with delegated callers.",
  },
  {
    name: 'X-NET-CALLER-SIG',
    description:
      "The caller's signature (EIP-191 `personal_sign`, 65 bytes, low s) over `x402-authorize:{service_id}:{job_index}:{keccak256 of the body, hex without 0x}:{nonce}:{expiry}`.",
  },
  {
    name: 'X-NET-CALLER-NONCE',
    description: '1 to 128 visible ASCII characters, no colon. Valid for one payment.',
  },
  { name: 'X-NET-CALLER-EXPIRY', description: 'When the signature expires, in Unix seconds.' },
];

const redeliveryHeader = {
  name: 'X-NET-REDELIVERY-SIG',
  description:
    'For a payment that is answered with `payment_recovered`: the payer\'s signature over this request. EIP-712, domain `{name: "Tollbook", version: "1", chainId}`, type `Redelivery(address asset,bytes32 paymentNonce,bytes32 quoteDigest,string method,string path,bytes32 bodySha256)`; a version 1 payment has the quote digest zero.',
};

const callbackHeader = {
  name: 'X-NET-CALLBACK-URL',
  description:
    'An https URL that gets one signed POST once the end of the paid call is known, if the operator allows it. A part of what the payment pays for.',
};

/** Refusals of the caller of a restricted job. */
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

const acceptedHeaders = [
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'Location',
  'Idempotent-Replayed',
  'Preference-Applied',
] as const;

const preferHeader = {
  name: 'Prefer',
  description:
    '`wait=30`: how many seconds, at most 60, the answer may wait for the result (RFC 7240). Where many wait already the answer comes immediately.',
};

const tokenRefusals = [
  'invalid_request',
  'payer_signature_required',
  'invalid_payer_signature',
  'receipt_not_found',
  'body_too_large',
  'rate_limited',
  'internal_error',
  'ledger_unavailable',
  'payer_signature_unchecked',
] as const satisfies readonly RefusalCode[];

const tokenAnswer = { status: 200, description: 'The token.', schema: receiptToken } as const;

const ofJobs = { tag: 'Jobs' } as const;

export const jobOperations = operations(ofJobs, {
  'POST /x402/jobs/{service_id}/{job_index}': {
    id: 'payForJob',
    summary: 'Pay for a job',
    description: paying,
    query: payQuery,
    requestHeaders: [...paymentHeaders, ...callerHeaders, redeliveryHeader, preferHeader, callbackHeader],
    body: {
      bytes: '*/*',
      description:
        "The job's input, passed to its runner byte for byte. A job that restricts its input says so in `input`.",
    },
    answers: [
      {
        status: 200,
        description:
          'The same as the 202, with the result: the call was completed within the time of `Prefer`.',
        schema: completed,
        headers: acceptedHeaders,
      },
      {
        status: 202,
        description: 'The payment is settled and the call is enqueued.',
        schema: z.union([accepted, replayed]),
        headers: acceptedHeaders,
      },
    ],
    refusals: [
      'invalid_request',
      'invalid_content_type',
      'invalid_callback_url',
      'callback_not_allowed',
      'invalid_payment_identifier',
      'payment_required',
      'payment_invalid',
      'wallet_not_deployed',
      'quote_expired',
      'quote_ended',
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
      'runner_unavailable',
      'overloaded',
      'facilitator_unavailable',
      'no_current_rate',
      'payment_use_unknown',
      'ledger_unavailable',
      'ledger_inconsistent',
      'payment_recovered',
      'payment_unrecorded',
      'settlement_pending',
      ...callerRefusals,
    ],
  },
  'POST /x402/jobs/{service_id}/{job_index}/auth-dry-run': {
    id: 'dryRunAuthorization',
    summary: 'Test the authorization of a request',
    description: `Runs the checks of a restricted job on this request and reports each. Settles nothing, enqueues nothing and consumes no
nonce. Also works on a disabled job that has the fields of a restricted one. If the job's caller is the payer, send the payment header, or \`X-NET-CALLER\`
alone: the caller is then asserted without proof.`,
    requestHeaders: [...paymentHeaders, ...callerHeaders],
    body: { bytes: '*/*', description: 'The exact body of the later paid request.' },
    answers: [{ status: 200, description: 'The request would be allowed.', schema: dryRunAllowed }],
    refusals: [
      'invalid_request',
      'payment_invalid',
      'wallet_not_deployed',
      'x402_disabled',
      'job_not_found',
      'body_too_large',
      'rate_limited',
      'internal_error',
      'overloaded',
      'ledger_unavailable',
      'ledger_inconsistent',
      ...callerRefusals,
    ],
    refusalContext: dryRunRefusal,
  },
  'GET /x402/jobs/{service_id}/{job_index}/price': {
    id: 'getPrice',
    summary: 'What a job costs now',
    description: 'Issues no quote and writes nothing.',
    requestHeaders: [ifNoneMatch],
    answers: [{ status: 200, description: 'The price.', schema: price, headers: ['ETag'] }, notModified],
    refusals: ['x402_disabled', 'job_not_found'],
  },
  'GET /x402/jobs': {
    id: 'listJobs',
    summary: 'What is sold, and what it costs now',
    description: 'The price of every job that is sold, in pages. Issues no quote and writes nothing.',
    query: catalogueQuery,
    requestHeaders: [ifNoneMatch],
    answers: [{ status: 200, description: 'One page.', schema: catalogue, headers: ['ETag'] }, notModified],
    refusals: ['invalid_request', 'invalid_cursor'],
  },
  'GET /.well-known/x402': {
    id: 'getX402Resources',
    summary: 'What is sold, for crawlers',
    description: 'The first 1,000 jobs; `/x402/jobs` has all.',
    requestHeaders: [ifNoneMatch],
    answers: [
      { status: 200, description: 'The document.', schema: wellKnown, headers: ['ETag'] },
      notModified,
    ],
  },
  'GET /.well-known/did.json': {
    id: 'getDidDocument',
    summary: 'The public keys of signed offers and receipts',
    description:
      'The DID document of `did:web` and the host of this address, for verifiers of the x402 extension `offer-receipt`. 404 if nothing is signed.',
    requestHeaders: [ifNoneMatch],
    answers: [
      { status: 200, description: 'The document.', schema: didDocument, headers: ['ETag'] },
      notModified,
    ],
    refusals: ['not_found'],
  },
  'GET /llms.txt': {
    id: 'getLlmsTxt',
    summary: 'What is sold and how to pay, for agents',
    description: 'Plain text in the form of llmstxt.org. An agent that has read it can pay for a job.',
    requestHeaders: [ifNoneMatch],
    answers: [{ status: 200, description: 'The text.', bytes: 'text/plain', headers: ['ETag'] }, notModified],
  },
  'GET /x402/receipts/{quote_digest}': {
    id: 'getReceipt',
    summary: 'The receipt of a quote',
    description:
      "Readable only with the digest; the `receipt_token` of the 202 also gives access to the runner's result.",
    security: 'receiptToken',
    query: receiptQuery,
    requestHeaders: [
      {
        name: 'Last-Event-ID',
        description: 'Of an event stream that was interrupted: the id of its last event.',
      },
    ],
    answers: [
      {
        status: 200,
        description: 'The receipt; with `Accept: text/event-stream` each state until the end.',
        schema: receipt,
        headers: asOfHeaders,
        events:
          'Receipts as `data`, as long as `wait_secs` permits: `state`, and `final` with the result and the proofs. Their ids are the versions of the receipt.',
      },
    ],
    refusals: [
      'invalid_request',
      'invalid_receipt_token',
      'receipt_not_found',
      'too_many_waits',
      'internal_error',
      'ledger_unavailable',
    ],
  },
  'GET /x402/receipts/{quote_digest}/result': {
    id: 'getResult',
    summary: 'The bytes of a result',
    description:
      "The runner's result unchanged, small or large, for the `receipt_token` of the 202. The type is the runner's: treat it as untrusted.",
    security: 'receiptToken',
    requestHeaders: [
      { name: 'Range', description: 'One range of bytes. Others are ignored.' },
      { name: 'If-Range', description: 'The `ETag` that the earlier bytes had.' },
    ],
    answers: [
      { status: 200, description: 'The whole.', bytes: 'application/octet-stream', headers: ['ETag'] },
      {
        status: 206,
        description: 'The range.',
        bytes: 'application/octet-stream',
        headers: ['ETag', 'Content-Range'],
      },
      { status: 416, description: 'The range begins after the end.', headers: ['ETag', 'Content-Range'] },
    ],
    refusals: [
      'invalid_receipt_token',
      'result_not_stored',
      'result_store_unavailable',
      'too_many_waits',
      'internal_error',
      'ledger_unavailable',
    ],
  },
  'GET /x402/receipts': {
    id: 'listReceiptsOfWallet',
    summary: 'The paid calls of a wallet',
    description:
      'By the x402 extension `sign-in-with-x`: the 402 has nothing to pay and a challenge; the same request with the signed challenge lists what the wallet has paid for, with the tokens of the receipts. Each challenge serves one request. A contract sees its payments on the chain that it signs for.',
    query: walletQuery,
    requestHeaders: [
      {
        name: 'SIGN-IN-WITH-X',
        description:
          'The message and its signature: base64 of JSON with the values of `info`, `address`, `chainId` and `type` of one of `supportedChains`, and `signature` (EIP-191 or ERC-1271).',
      },
    ],
    answers: [{ status: 200, description: 'One page.', schema: walletReceipts }],
    refusals: [
      'invalid_request',
      'invalid_cursor',
      'wallet_signature_required',
      'rate_limited',
      'internal_error',
      'ledger_unavailable',
      'payer_signature_unchecked',
    ],
  },
  'POST /x402/receipts/{quote_digest}/token': {
    id: 'getReceiptToken',
    summary: 'The token of a receipt, for its payer',
    description:
      'For a payer who has lost the 202. Without `signed` the answer is 401 with a challenge; sign its `typed_data` with the account that paid.',
    body: { schema: receiptTokenBody },
    answers: [tokenAnswer],
    refusals: tokenRefusals,
  },
  'POST /x402/receipts/{quote_digest}/refund-request': {
    id: 'requestRefund',
    summary: 'Asks for the refund of a payment, for its payer',
    description:
      'Of a call that was not delivered, whose attempts fail, or of a route whose answer has a status of 400 or above. The payer signs its reason: EIP-712, domain `{name: "Tollbook", version: "1", chainId}`, type `RefundRequest(bytes32 quoteDigest,string reason)`. An operator decides where the refund is not due anyway; the receipt shows it. One request counts for each payment, and the same one again changes nothing.',
    body: { schema: refundRequestBody },
    answers: [{ status: 200, description: 'The request is on record.', schema: requestedRefund }],
    refusals: [
      'invalid_request',
      'invalid_payer_signature',
      'receipt_not_found',
      'refund_not_failed',
      'refund_delivered',
      'refunded_before',
      'refund_requested_before',
      'body_too_large',
      'rate_limited',
      'internal_error',
      'ledger_unavailable',
      'payer_signature_unchecked',
    ],
  },
  'POST /x402/receipts/token': {
    id: 'getReceiptTokenOfPayment',
    summary: 'The receipt of a payment and its token, for its payer',
    description:
      'The same for a payer who does not know the digest: of a version 1 payment, or after the offer was lost. Says nothing about the payment before its payer has signed.',
    body: { schema: paymentTokenBody },
    answers: [tokenAnswer],
    refusals: tokenRefusals,
  },
});
