interface TableEntry {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  /** The code that clients get, if it is not the entry's name. */
  readonly code?: string;
  /** False if repeating the request is useless: OpenAI's clients repeat 408, 409, 429 and 5xx by themselves. */
  readonly retry?: boolean;
}

const request = 'invalid_request_error';

/**
 * Every error of the routing API: its HTTP status, OpenAI's type, and a sentence for a person. The table is closed: HTTP and
 * OpenAPI take status and sentence from here.
 */
export const openAiErrors = {
  invalid_request: { status: 400, type: request, message: 'The request is malformed.' },
  invalid_json: { status: 400, type: request, message: 'The request body is not a JSON object in UTF-8.' },
  missing_required_parameter: { status: 400, type: request, message: 'A required parameter is missing.' },
  invalid_type: { status: 400, type: request, message: 'A parameter has the wrong type.' },
  invalid_value: { status: 400, type: request, message: 'A parameter has a value that is not allowed.' },
  invalid_parameter_combination: {
    status: 400,
    type: request,
    message: 'Two parameters contradict each other.',
  },
  unsupported_parameter: {
    status: 400,
    type: request,
    message: 'A parameter cannot be used with this model.',
  },
  context_length_exceeded: {
    status: 400,
    type: request,
    message: "The request is longer than this model's context.",
  },
  conflicting_credentials: {
    status: 400,
    type: request,
    message: 'The request carries two credentials: send either an API key or a spend authorization.',
  },
  invalid_amount: {
    status: 400,
    type: request,
    message: 'The amount of the spend authorization is invalid.',
  },
  below_min_charge: {
    status: 400,
    type: request,
    message: 'The spend authorization is below the minimum charge.',
  },
  exceeds_max_spend: {
    status: 400,
    type: request,
    message: 'The spend authorization is above the maximum for one request.',
  },
  operator_mismatch: {
    status: 400,
    type: request,
    message: 'The spend authorization is for another operator.',
  },
  service_id_mismatch: {
    status: 400,
    type: request,
    message: 'The spend authorization is for another service.',
  },
  nonce_replay: {
    status: 400,
    type: request,
    message: 'The nonce of the spend authorization was already used; nothing was charged again.',
    retry: false,
  },
  invalid_api_key: {
    status: 401,
    type: request,
    message: 'The API key is unknown, expired or revoked.',
  },
  spend_replay: {
    status: 409,
    type: request,
    code: 'nonce_replay',
    message: 'The spend authorization has already paid for this request; nothing was charged again.',
    retry: false,
  },
  spend_in_progress: {
    status: 409,
    type: request,
    message: 'The request that this spend authorization pays for is still running.',
  },
  insufficient_funds: {
    status: 402,
    type: 'insufficient_funds',
    message: 'There is not enough credit for this model; free-tier models require none. Nothing was charged.',
  },
  key_budget_reached: {
    status: 402,
    type: 'insufficient_funds',
    message:
      "This request may cost more than the rest of its key's budget, which starts anew each UTC day or month. Nothing was charged.",
  },
  invalid_spend_auth: {
    status: 402,
    type: 'insufficient_funds',
    message: 'The spend authorization cannot be read, or it has expired.',
  },
  signer_mismatch: {
    status: 402,
    type: 'insufficient_funds',
    message: "The spend authorization is not signed by its account's spending key.",
  },
  insufficient_balance: {
    status: 402,
    type: 'insufficient_funds',
    message: "The balance of the spend authorization's account is below its amount; nothing was charged.",
  },
  authorization_failed: {
    status: 402,
    type: 'insufficient_funds',
    message: 'The prepaid contract rejected the spend authorization; nothing was charged.',
  },
  not_found: { status: 404, type: request, message: 'There is no resource at this path.' },
  model_not_found: { status: 404, type: request, message: 'There is no model with this name.' },
  method_not_allowed: { status: 405, type: request, message: 'This path does not accept that method.' },
  request_timeout: {
    status: 408,
    type: request,
    message: 'The request did not arrive in time. Send it again.',
  },
  body_too_large: {
    status: 413,
    type: request,
    message: 'The request body is larger than this gateway accepts.',
  },
  unsupported_media_type: {
    status: 415,
    type: request,
    message: 'The request body must be application/json.',
  },
  headers_too_large: {
    status: 431,
    type: request,
    message: 'The request headers are larger than this gateway accepts.',
  },
  rate_limit_exceeded: {
    status: 429,
    type: 'requests',
    message: 'Too many requests. Wait as long as Retry-After says.',
  },
  too_many_running: {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message:
      'Too many completions of this client run at the same time. Send the request again when one has ended.',
  },
  daily_quota_exceeded: {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'The daily limit of requests is reached; the next day begins at midnight UTC.',
    retry: false,
  },
  server_error: {
    status: 500,
    type: 'server_error',
    message: 'The gateway failed.',
  },
  upstream_error: {
    status: 502,
    type: 'server_error',
    message: "The model's server failed or gave an unreadable answer.",
  },
  upstream_unavailable: {
    status: 503,
    type: 'server_error',
    message: 'No server of this model could be reached. Send the request again later.',
  },
  chain_unavailable: {
    status: 503,
    type: 'server_error',
    message:
      'The chain could not be reached, or did not include the spend authorization in time. Send the request again later.',
  },
  ledger_unavailable: {
    status: 503,
    type: 'server_error',
    message: 'The ledger could not be reached. Send the request again later.',
  },
  ledger_inconsistent: {
    status: 503,
    type: 'server_error',
    message:
      'The ledger lost events, and nothing is sold until its operator has recovered it. Send the request again later.',
  },
  quiet: {
    status: 503,
    type: 'server_error',
    message:
      'This gateway is quiet: its database may be a copy of the ledger, so it serves no models. Nothing was charged. Its operator ends ' +
      'that with `tollbook go-live`. Send the request again later.',
  },
  overloaded: {
    status: 503,
    type: 'server_error',
    message: 'The gateway is busy. Send the request again later.',
  },
  upstream_timeout: {
    status: 504,
    type: 'server_error',
    message: "The model's server did not answer in time.",
  },
} as const satisfies Record<string, TableEntry>;

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
 * hold more of a client's or a peer's text than a name of at most 64 characters of `A-Za-z0-9_.-`.
 */
export function openAiError(
  name: OpenAiErrorName,
  more: { readonly message?: string; readonly param?: string } = {},
): OpenAiError {
  const { status, type, message, code = name, retry = true }: TableEntry = openAiErrors[name];
  const error = { message: more.message ?? message, type, param: more.param ?? null, code };
  return { status, retry, body: { error } };
}
