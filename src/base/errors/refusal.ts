/**
 * Every code a request can be refused with: its HTTP status, and for a person the mistake, whether anything was charged and
 * the next step. The table is closed: HTTP and OpenAPI take status and sentence from here.
 */
export const refusals = {
  ...withStatus(400, {
    invalid_request: 'The request is malformed. Correct it as described in the API documentation.',
    invalid_cursor: 'The cursor was not issued by this gateway. Start again without a cursor.',
    missing_caller: 'The header X-NET-CALLER is missing; this job requires it. This request charged nothing.',
    invalid_caller: 'X-NET-CALLER is not an address, or its checksum is wrong. This request charged nothing.',
    missing_signature:
      'The header X-NET-CALLER-SIG is missing; this job requires it. This request charged nothing.',
    invalid_signature:
      'X-NET-CALLER-SIG is not a 65-byte signature with a low s. This request charged nothing.',
    missing_signature_nonce:
      'The header X-NET-CALLER-NONCE is missing; this job requires it. This request charged nothing.',
    invalid_signature_nonce:
      'X-NET-CALLER-NONCE is not 1 to 128 visible ASCII characters without a colon. This request charged nothing.',
    missing_signature_expiry:
      'The header X-NET-CALLER-EXPIRY is missing; this job requires it. This request charged nothing.',
    invalid_signature_expiry:
      'X-NET-CALLER-EXPIRY is not a time in Unix seconds, or it is too far in the future. This request charged nothing.',
    invalid_callback_url:
      'X-NET-CALLBACK-URL is not one https URL of a public host, of at most 2,000 characters and without a user name. This request charged nothing. Correct or omit it.',
    invalid_payment_identifier:
      'The payment-identifier is not 16 to 128 characters of A-Z, a-z, 0-9, _ and -. This request charged nothing.',
    invalid_webhook:
      'A header of webhook-id, webhook-timestamp and webhook-signature is missing or malformed. No call was made. Send them as Standard Webhooks says; an id has no dots.',
    invalid_content_type:
      'The content type is longer than 200 characters or not plain ASCII. This request charged nothing.',
  }),
  ...withStatus(401, {
    webhook_signature_mismatch:
      "The webhook is not signed with a secret of this trigger, or its time is too far from the gateway's. No call was made. Sign it again with the present time.",
    unauthorized: 'Missing or unknown bearer token.',
    session_required: 'There is no valid session. Sign in first.',
    siwe_mismatch:
      'The message is not valid for this gateway now, or its signature is not by its address. Request a new nonce and sign again.',
    payer_signature_required:
      "The token of this receipt is given for the payer's signature over a challenge. Sign `typed_data`, and send the request again with it.",
    invalid_payer_signature: "The signature is not the payer's over this request.",
    invalid_receipt_token: 'The token does not belong to this receipt.',
  }),
  ...withStatus(402, {
    wallet_signature_required:
      'Your paid calls are listed for the signature of the wallet that paid. Sign the challenge in the PAYMENT-REQUIRED header (sign-in-with-x); nothing is charged.',
    payment_required: 'This job must be paid for. Sign one of the offered payments.',
    payment_invalid:
      'The payment was rejected. This request charged nothing. Sign one of the offered payments.',
    wallet_not_deployed:
      "The payer's wallet has no contract on the chain, and no facilitator of this gateway deploys it. This request charged nothing. Deploy the wallet, then sign one of the offered payments.",
    quote_expired:
      'The quote that this payment names has expired. This request charged nothing. Sign one of the offered payments.',
    quote_ended:
      'The quote that this request names has ended: a payment has taken it. This request charged nothing. Sign one of the offered payments.',
  }),
  ...withStatus(403, {
    session_not_fresh:
      'A way to sign in is added or removed within ten minutes of a sign-in. Nothing was changed: sign in again first.',
    callback_not_allowed:
      'This gateway calls no URLs of clients, or none of this host. This request charged nothing. Omit X-NET-CALLBACK-URL and wait for the receipt instead.',
    x402_disabled: 'This job is not sold over x402. This request charged nothing.',
    wrong_origin: 'The request comes from a page of another origin, which may not act for a visitor.',
    user_disabled: 'The operator has disabled this user. This request charged nothing. Ask the operator.',
    forbidden: 'The token does not have the required scope or service.',
    signature_expired:
      "The caller's signature has expired. This request charged nothing. Sign again with a later expiry.",
    signature_mismatch: "The signature over this request is not the caller's. This request charged nothing.",
    caller_not_permitted: 'The caller is not permitted to call this job. This request charged nothing.',
  }),
  ...withStatus(404, {
    not_found: 'There is no resource at this path.',
    job_not_found:
      'There is no such job. This request charged nothing. GET /x402/jobs lists the jobs that are sold.',
    account_not_found: 'There is no such account.',
    key_not_found: 'There is no API key with this id.',
    wallet_not_found: 'This is no wallet of yours. Nothing was changed.',
    call_not_found: 'There is no dead-lettered call with this id.',
    runner_not_found: 'The configuration has no runner of this name.',
    trigger_not_found: 'There is no webhook trigger of this name. No call was made.',
    payment_not_found: 'The ledger has no quote with this digest.',
    reconciliation_not_found: 'There is no reconciliation with this number.',
    proof_not_found: 'No signed tree head covers this: the event does not exist, or it is not sealed yet.',
    receipt_not_found:
      'There is no receipt of a quote with this digest. An unpaid quote may be summarised and not stored by itself. This request charged nothing.',
    result_not_stored: 'There is no result under this receipt.',
  }),
  ...withStatus(405, {
    method_not_allowed: 'This path has another method: Allow names it. This request charged nothing.',
  }),
  ...withStatus(408, {
    request_timeout: 'The request did not arrive in time. Send it again.',
  }),
  ...withStatus(409, {
    payment_replay:
      'This payment was already used for another request. It is not charged again. Sign a new payment for this request.',
    payment_recovered:
      "The chain shows that this payment was charged, and no call was made for it; its refund is due or on record, and nothing more is charged. Until the refund is started it is delivered instead if the same request comes with the payer's signature over it in X-NET-REDELIVERY-SIG.",
    signature_replay:
      "The caller's nonce was already used by another payment, perhaps by one that failed and may still land. This request charged nothing. Sign again with a new nonce.",
    payment_identifier_conflict:
      'Another payment of this payer has the same payment-identifier, perhaps one that failed and may still land. This request charged nothing. Use a new identifier.',
    too_many_keys: 'You have the maximum number of API keys. Revoke one first.',
    wallet_taken:
      'This wallet signs in to another account already. Nothing was changed, and accounts are not merged. Use that account, or another wallet.',
    last_way_to_sign_in:
      'This wallet is the only way to sign in to your account. Nothing was changed. Add another one first.',
    quote_in_use: 'Another payment is using this quote. This request charged nothing. Request a new quote.',
    call_unpaid: 'The payment for this call is not settled at present, so the call cannot be queued again.',
    call_refunded: 'The payment for this call was refunded, so the call cannot be queued again.',
    refund_under_way:
      'A refund of the payment for this call is being sent, so the call cannot be queued again. Record the refund, or say that it was not sent, and try again.',
    count_differs:
      'Another number of dead letters is meant than `count` says, and nothing was changed. `meant` is the number now: look at them, and confirm it.',
    call_leased:
      'A runner has this call under a lease and may still complete it. Pause the runner and try again later.',
    idempotency_conflict: 'This Idempotency-Key was used for another request. Nothing was granted.',
    account_full: 'The account would exceed the maximum credit. Nothing was granted.',
    webhook_id_conflict:
      'A webhook with this webhook-id and another body has made a call. No other one was made.',
    refund_not_failed:
      'The call is under way, and no attempt has failed: no refund was asked for. Wait for its end: if it is not delivered, its refund is due without a request.',
    refund_delivered:
      'The call was delivered, so this gateway takes no request for its refund. Write to the operator.',
    refunded_before: 'This payment was refunded, as its receipt shows. Nothing more was asked for.',
    refund_requested_before:
      'A refund of this payment was asked for before, with another reason. That one counts: the receipt shows what became of it.',
    lease_lost: 'This lease is no longer held. What was sent under it is discarded.',
  }),
  ...withStatus(410, {
    answer_not_kept:
      'The answer to this payment was delivered, and it is not stored, or not any more. Nothing more is charged. Pay again for another answer.',
    refund_due:
      'This payment was charged, and no answer could be delivered for it: its refund is due, or was made, as its receipt says. Nothing more is charged.',
  }),
  ...withStatus(413, {
    result_too_large: 'The result is larger than this gateway accepts.',
    body_too_large:
      'The request body is larger than this gateway accepts. This request charged nothing. Send a smaller one, a payment included if there was one.',
  }),
  ...withStatus(415, {
    unsupported_media_type:
      'This content type or content encoding is not accepted here. This request charged nothing.',
  }),
  ...withStatus(422, {
    result_mismatch:
      'The parts that were stored under this lease are not the result that was named. The call is not completed: send the parts again.',
    input_invalid: "The body does not match this job's schema. This request charged nothing.",
  }),
  ...withStatus(429, {
    rate_limited:
      'Too many unpaid requests. This request charged nothing. Wait as long as Retry-After says, then send the same payment again.',
    too_many_attempts: 'Too many attempts. Wait as long as Retry-After says.',
  }),
  ...withStatus(
    429,
    {
      too_many_waits:
        'Too many requests wait for results already, of your address or of all. This request charged nothing. Ask without wait_secs, or wait as long as Retry-After says.',
    },
    5,
  ),
  ...withStatus(426, {
    upgrade_refused:
      'This path passes on no WebSocket and no other upgrade. This request charged nothing. Send it without the header Upgrade.',
  }),
  ...withStatus(431, {
    headers_too_large:
      'The request headers are larger than this gateway accepts. This request charged nothing.',
  }),
  ...withStatus(500, {
    internal_error: 'The gateway failed. Sending the same request again is safe.',
  }),
  ...withStatus(502, {
    upstream_failed:
      'The payment was charged once, and the service that was paid for gave no complete answer. Do not sign another one; send this request again. If no repetition succeeds in time, the refund is due.',
    upstream_unanswered:
      'The service that is sold here gave no complete answer, so this payment was not settled. This request charged nothing; if the payment lands all the same, its refund is due. Sign a new payment to try again.',
  }),
  ...withStatus(503, {
    sign_in_unavailable: 'This way to sign in is unavailable now. Try again later.',
  }),
  ...withStatus(
    503,
    {
      overloaded: 'The gateway is busy. This request charged nothing. Send the same request again later.',
    },
    1,
  ),
  ...withStatus(
    503,
    {
      answer_under_way:
        'Another request with this payment is getting the answer. Nothing more is charged. Do not sign another one; send this request again.',
      ledger_unavailable: 'The ledger could not be reached. Sending the same request again is safe.',
      settlement_pending:
        'The payment was sent and its outcome is not known yet. Do not sign another one; send this request again.',
    },
    2,
  ),
  ...withStatus(
    503,
    {
      upstream_unavailable:
        'The service that is sold here cannot be reached now. This request charged nothing. Send the same payment again later.',
      price_unavailable:
        'The price of this request could not be learned from the seller. This request charged nothing. Send the same request again later.',
      result_store_unavailable:
        'The store of large results is unavailable. Send the same request again later.',
      enqueue_failed:
        'The gateway cannot accept another call now. This request charged nothing. Send the same request again later.',
      facilitator_unavailable:
        'The payment could not be verified. This request charged nothing. Send the same payment again later.',
      no_current_rate:
        'No accepted token has a current rate, so this job has no price in any now. This request charged nothing. Send the request again later.',
      payment_use_unknown:
        'The payment was rejected, and it is not known whether its authorization was used for this transfer before. This request has charged nothing. Do not sign another payment; send this request again.',
      payer_signature_unchecked:
        "The payer's contract could not be asked about its signature. Send the request again later.",
      permission_check_failed:
        'The permission contract could not be reached. This request charged nothing. Send the same payment again later.',
    },
    5,
  ),
  ...withStatus(
    503,
    {
      runner_unavailable:
        'The runner of this job takes no calls now. This request charged nothing. Send the same payment again later.',
      payment_unrecorded:
        'The chain shows that this payment was charged, and the ledger has no record of it yet. Nothing more is charged. Do not sign another one; send this request again later.',
    },
    30,
  ),
  ...withStatus(
    503,
    {
      ledger_inconsistent:
        'The ledger lost events, and nothing is sold until its operator has recovered it. This request charged nothing. ' +
        'Do not sign another payment for it; send the same request again later.',
      quiet:
        'This gateway is quiet: its database may be a copy of the ledger, so it serves reads alone. This request charged nothing. ' +
        'Its operator ends that with `tollbook go-live`. Do not sign another payment for it; send the same request again later.',
    },
    60,
  ),
};

interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** Sent as Retry-After, unless the refusal itself knows better. */
  readonly retryAfterSecs?: number;
}

/** Refusals of one status, by their sentences. */
function withStatus<Code extends string>(
  status: number,
  sentences: Readonly<Record<Code, string>>,
  retryAfterSecs?: number,
): Readonly<Record<Code, Refusal>> {
  const entries = Object.entries<string>(sentences).map(([code, sentence]) => [
    code,
    { status, sentence, ...(retryAfterSecs !== undefined && { retryAfterSecs }) },
  ]);
  return Object.fromEntries(entries) as Record<Code, Refusal>;
}

export type RefusalCode = keyof typeof refusals;

/** How long a client waits before it sends the same request again, if the code alone says so. */
export function defaultRetryAfterSecs(code: RefusalCode): number | undefined {
  return refusals[code].retryAfterSecs;
}
