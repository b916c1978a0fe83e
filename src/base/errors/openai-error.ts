interface TableEntry {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

const request = 'invalid_request_error';

/**
 * Every error of the routing API: its HTTP status, OpenAI's type, and a sentence for a person. The table is closed: HTTP and
 * OpenAPI take status and sentence from here.
 */
export const openAiErrors = {
  ...withStatus(400, request, {
    invalid_request: 'The request is malformed.',
    invalid_json: 'The request body is not a JSON object in UTF-8.',
    missing_required_parameter: 'A required parameter is missing.',
    invalid_type: 'A parameter has the wrong type.',
    invalid_value: 'A parameter has a value that is not allowed.',
    invalid_parameter_combination: 'Two parameters contradict each other.',
    unsupported_parameter: 'A parameter cannot be used with this model.',
    context_length_exceeded:
      "The request is longer than this model's context. Nothing was charged. Shorten it, or use a model with a longer context.",
    conflicting_credentials:
      'The request carries two credentials: send either an API key or a spend authorization.',
    invalid_amount: 'The amount of the spend authorization is invalid.',
    below_min_charge: 'The spend authorization is below the minimum charge.',
    exceeds_max_spend: 'The spend authorization is above the maximum for one request.',
    operator_mismatch: 'The spend authorization is for another operator.',
    service_id_mismatch: 'The spend authorization is for another service.',
    nonce_replay: 'The nonce of the spend authorization was already used; nothing was charged again.',
  }),
  ...withStatus(401, request, {
    invalid_api_key:
      'The API key is unknown, expired or revoked. Nothing was charged. Send a valid one: `Authorization: Bearer sk-net-…`.',
  }),
  ...withStatus(402, 'insufficient_funds', {
    insufficient_funds:
      'There is not enough credit for this model; free-tier models require none. Nothing was charged.',
    key_budget_reached:
      "This request may cost more than the rest of its key's budget, which starts anew each UTC day or month. Nothing was charged.",
    invalid_spend_auth: 'The spend authorization cannot be read, or it has expired.',
    signer_mismatch: "The spend authorization is not signed by its account's spending key.",
    insufficient_balance:
      "The balance of the spend authorization's account is below its amount; nothing was charged.",
    authorization_failed: 'The prepaid contract rejected the spend authorization; nothing was charged.',
  }),
  ...withStatus(404, request, {
    not_found: 'There is no resource at this path.',
    model_not_found:
      'There is no model with this name. Nothing was charged. GET /v1/models lists those that there are.',
  }),
  ...withStatus(405, request, {
    method_not_allowed: 'This path does not accept that method.',
  }),
  ...withStatus(408, request, {
    request_timeout: 'The request did not arrive in time. Send it again.',
  }),
  ...withStatus(409, request, {
    spend_replay: 'The spend authorization has already paid for this request; nothing was charged again.',
    spend_in_progress: 'The request that this spend authorization pays for is still running.',
  }),
  ...withStatus(413, request, {
    body_too_large: 'The request body is larger than this gateway accepts. Nothing was charged. Shorten it.',
  }),
  ...withStatus(415, request, {
    unsupported_media_type: 'The request body must be application/json.',
  }),
  ...withStatus(429, 'requests', {
    rate_limit_exceeded:
      'Too many requests. Nothing was charged. Send the request again after the seconds in Retry-After.',
    too_many_running:
      'Too many completions of this client run at the same time. Nothing was charged. Send the request again when one has ended.',
    daily_quota_exceeded:
      'The requests of this day are used up. Nothing was charged. The next day begins at midnight UTC.',
  }),
  ...withStatus(431, request, {
    headers_too_large: 'The request headers are larger than this gateway accepts.',
  }),
  ...withStatus(500, 'server_error', {
    server_error: 'The gateway failed. Send the request again later.',
  }),
  ...withStatus(502, 'server_error', {
    upstream_error:
      "The model's server failed or gave an unreadable answer. Nothing was charged. Send the request again, or use another model.",
  }),
  ...withStatus(503, 'server_error', {
    upstream_unavailable:
      'No server of this model could be reached. Nothing was charged. Send the request again later, or use another model.',
    chain_unavailable:
      'The chain could not be reached, or did not include the spend authorization in time. Send the request again later.',
    ledger_unavailable: 'The ledger could not be reached. Nothing was charged. Send the request again later.',
    ledger_inconsistent:
      'The ledger lost events, and nothing is sold until its operator has recovered it. Nothing was charged. Send the request again later.',
    quiet:
      'This gateway is quiet: its database may be a copy of the ledger, so it serves no models. Nothing was charged. Its operator ends ' +
      'that with `tollbook go-live`. Send the request again later.',
    overloaded: 'The gateway is busy. Nothing was charged. Send the request again later.',
  }),
  ...withStatus(504, 'server_error', {
    upstream_timeout:
      "The model's server did not answer in time. Nothing was charged. Send the request again, or use another model.",
  }),
};

/** Errors of one status and type, by their messages. */
function withStatus<Name extends string>(
  status: number,
  type: string,
  messages: Readonly<Record<Name, string>>,
): Readonly<Record<Name, TableEntry>> {
  const entries = Object.entries<string>(messages).map(([name, message]) => [
    name,
    { status, type, message },
  ]);
  return Object.fromEntries(entries) as Record<Name, TableEntry>;
}

/**
 * `code`: what clients get, where it is not the entry's name. `retry`: false where repeating the request is useless: OpenAI's clients repeat
 * 408, 409, 429 and 5xx by themselves.
 */
const exceptions: Partial<Record<OpenAiErrorName, { readonly code?: string; readonly retry?: false }>> = {
  nonce_replay: { retry: false },
  spend_replay: { code: 'nonce_replay', retry: false },
  too_many_running: { code: 'rate_limit_exceeded' },
  daily_quota_exceeded: { code: 'rate_limit_exceeded', retry: false },
};

export type OpenAiErrorName = keyof typeof openAiErrors;

/** One error to send: as a JSON body with its status, or as the last event of a stream. */
export interface OpenAiError {
  readonly status: number;
  /** If false, it is sent with `x-should-retry: false`. */
  readonly retry: boolean;
  readonly body: {
    readonly error: {
      readonly message: string;
      readonly type: string;
      readonly param: string | null;
      readonly code: string;
    };
  };
}

/**
 * An error of the table.
 * @param more a sentence that says more than the table's, and the parameter it is about (`messages[2].content`). Neither may
 * hold more of a client's or a peer's text than a name of at most 64 characters of `A-Za-z0-9_.-`, a model's also of `/:@`.
 */
export function openAiError(
  name: OpenAiErrorName,
  more: { readonly message?: string; readonly param?: string } = {},
): OpenAiError {
  const { status, type, message } = openAiErrors[name];
  const { code = name, retry = true } = exceptions[name] ?? {};
  const error = { message: more.message ?? message, type, param: more.param ?? null, code };
  return { status, retry, body: { error } };
}
