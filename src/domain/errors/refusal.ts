/**
 * Every way a request can be refused: its HTTP status and one sentence for a person.
 * The table is closed: an answer that is not in it cannot be given.
 */
export const refusals = {
  invalid_request: { status: 400, sentence: 'The request is not well formed.' },
  invalid_cursor: {
    status: 400,
    sentence: 'This cursor was not given out here: begin again without one.',
  },
  missing_caller: { status: 400, sentence: 'This job wants the header X-NET-CALLER; nothing was charged.' },
  invalid_caller: { status: 400, sentence: 'X-NET-CALLER is not an address, or its checksum is wrong.' },
  missing_signature: {
    status: 400,
    sentence: 'This job wants the header X-NET-CALLER-SIG; nothing was charged.',
  },
  invalid_signature: { status: 400, sentence: 'X-NET-CALLER-SIG is not a 65-byte signature with a low s.' },
  missing_signature_nonce: {
    status: 400,
    sentence: 'This job wants the header X-NET-CALLER-NONCE; nothing was charged.',
  },
  invalid_signature_nonce: {
    status: 400,
    sentence: 'X-NET-CALLER-NONCE is not 1 to 128 visible ASCII characters without a colon.',
  },
  missing_signature_expiry: {
    status: 400,
    sentence: 'This job wants the header X-NET-CALLER-EXPIRY; nothing was charged.',
  },
  invalid_signature_expiry: {
    status: 400,
    sentence: 'X-NET-CALLER-EXPIRY is not a time in Unix seconds within the allowed future.',
  },
  invalid_payment_identifier: {
    status: 400,
    sentence:
      "The payment's payment-identifier is not an id of 16 to 128 of A-Z, a-z, 0-9, _ and -; nothing was charged.",
  },
  missing_payment_identifier: {
    status: 400,
    sentence: 'A payment must carry an id in its extension payment-identifier here; nothing was charged.',
  },
  unauthorized: { status: 401, sentence: 'This needs a bearer token that is known here.' },
  session_required: { status: 401, sentence: 'This needs a session that holds: sign in first.' },
  siwe_mismatch: {
    status: 401,
    sentence: 'The message is not one for this gateway now, or it is not signed by its address.',
  },
  invalid_receipt_token: { status: 401, sentence: 'This is not the token of that receipt.' },
  payment_required: { status: 402, sentence: 'This job is paid: sign one of the payments offered.' },
  payment_invalid: { status: 402, sentence: 'The payment was not accepted.' },
  quote_expired: { status: 402, sentence: 'The quote that this payment names is no longer open.' },
  x402_disabled: { status: 403, sentence: 'This job is not sold over x402.' },
  wrong_origin: { status: 403, sentence: 'Pages of other origins may not do this in the name of a visitor.' },
  forbidden: { status: 403, sentence: 'This token does not allow that.' },
  signature_expired: { status: 403, sentence: "The caller's signature has expired; nothing was charged." },
  signature_mismatch: {
    status: 403,
    sentence: "The signature over this request is not the caller's; nothing was charged.",
  },
  caller_not_permitted: { status: 403, sentence: 'This caller may not call this job; nothing was charged.' },
  not_found: { status: 404, sentence: 'There is nothing at this address.' },
  job_not_found: { status: 404, sentence: 'There is no job of this name.' },
  account_not_found: { status: 404, sentence: 'There is no account of this name.' },
  key_not_found: { status: 404, sentence: 'There is no API key of this id.' },
  call_not_found: { status: 404, sentence: 'There is no dead-lettered call of this id.' },
  payment_not_found: { status: 404, sentence: 'There is no quote of this digest in the ledger.' },
  reconciliation_not_found: { status: 404, sentence: 'There is no reconciliation of this number.' },
  proof_not_found: {
    status: 404,
    sentence: 'No signed head of the log covers that: there is no such event, or it is not sealed yet.',
  },
  receipt_not_found: { status: 404, sentence: 'There is no quote of this digest.' },
  request_timeout: { status: 408, sentence: 'The request did not arrive in time.' },
  payment_replay: { status: 409, sentence: 'This payment was already used for another request.' },
  signature_replay: {
    status: 409,
    sentence: "The caller's nonce was already used by another payment; nothing was charged.",
  },
  payment_identifier_conflict: {
    status: 409,
    sentence: 'Another payment of this payer carries the same payment-identifier; nothing was charged.',
  },
  too_many_keys: { status: 409, sentence: 'You have as many keys as one may have: revoke one first.' },
  quote_in_use: { status: 409, sentence: 'This quote is already being paid by another payment.' },
  call_refunded: {
    status: 409,
    sentence: 'The payment for this call was refunded: nobody pays for it any more.',
  },
  idempotency_conflict: {
    status: 409,
    sentence: 'This Idempotency-Key was used for another request; nothing was granted.',
  },
  account_full: { status: 409, sentence: 'An account cannot have so much credit; nothing was granted.' },
  lease_lost: { status: 409, sentence: 'This lease is not held any more: what it did does not count.' },
  result_too_large: { status: 413, sentence: 'The result is larger than this gateway keeps.' },
  invalid_content_type: {
    status: 400,
    sentence: 'The content type is longer than 200 characters, or not plain ASCII.',
  },
  body_too_large: { status: 413, sentence: 'The request body is larger than this gateway takes.' },
  unsupported_media_type: {
    status: 415,
    sentence: 'This job takes another content type; nothing was charged.',
  },
  input_invalid: { status: 422, sentence: 'This job does not take such a body; nothing was charged.' },
  rate_limited: { status: 429, sentence: 'Too many requests that were not paid; wait a little.' },
  too_many_attempts: { status: 429, sentence: 'Too many attempts: wait a little.' },
  headers_too_large: { status: 431, sentence: 'The request headers are larger than this gateway takes.' },
  internal_error: {
    status: 500,
    sentence: 'Something went wrong here. Sending the same request again is safe.',
  },
  enqueue_failed: {
    status: 503,
    retryAfterSecs: 5,
    sentence: 'There is no room for another call now; nothing was charged.',
  },
  overloaded: { status: 503, retryAfterSecs: 1, sentence: 'This gateway is busy; nothing was charged.' },
  sign_in_unavailable: { status: 503, sentence: 'Nobody can sign in this way now; try again.' },
  facilitator_unavailable: {
    status: 503,
    retryAfterSecs: 5,
    sentence: 'Payments cannot be verified now; nothing was charged.',
  },
  permission_check_failed: {
    status: 503,
    retryAfterSecs: 5,
    sentence: 'Whether the caller is permitted cannot be asked now; nothing was charged.',
  },
  ledger_unavailable: {
    status: 503,
    retryAfterSecs: 2,
    sentence: 'The ledger cannot be reached now; send the same request again.',
  },
  settlement_pending: {
    status: 503,
    retryAfterSecs: 2,
    sentence:
      'The payment was sent and its outcome is not known yet. Do not sign another one: send this request again.',
  },
} as const satisfies Record<string, Refusal>;

interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** Sent as Retry-After, unless the refusal itself knows better. */
  readonly retryAfterSecs?: number;
}

export type RefusalCode = keyof typeof refusals;

/** How long a client waits before it sends the same request again, if the code alone says so. */
export function defaultRetryAfterSecs(code: RefusalCode): number | undefined {
  const refusal: Refusal = refusals[code];
  return refusal.retryAfterSecs;
}
