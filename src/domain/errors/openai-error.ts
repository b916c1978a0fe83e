interface TableEntry {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  /** What clients see where it is not the entry's own name. */
  readonly code?: string;
  /** Clients repeat 408, 409, 429 and 5xx by themselves, unless they are told that it is of no use. */
  readonly retry?: boolean;
}

const request = 'invalid_request_error';

/**
 * Every way a request to the routing API can be refused: its HTTP status, OpenAI's type, and one sentence for a person.
 * The table is closed: an answer that is not in it cannot be given.
 */
export const openAiErrors = {
  invalid_request: { status: 400, type: request, message: 'The request is not well formed.' },
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
  invalid_amount: { status: 400, type: request, message: 'The amount of the spend authorization is wrong.' },
  below_min_charge: {
    status: 400,
    type: request,
    message: 'The spend authorization is below the least charge.',
  },
  exceeds_max_spend: {
    status: 400,
    type: request,
    message: 'The spend authorization is above what is taken at once.',
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
    message: 'The nonce of the spend authorization was used before.',
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
    message: 'The spend authorization has paid for this request before.',
    retry: false,
  },
  spend_in_progress: {
    status: 409,
    type: request,
    message: 'The request that the spend authorization pays for is being answered.',
  },
  insufficient_funds: {
    status: 402,
    type: 'insufficient_funds',
    message: 'There is not enough credit for this model; models of the free tier need none.',
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
    message: "The spend authorization's account holds less than its amount.",
  },
  authorization_failed: {
    status: 402,
    type: 'insufficient_funds',
    message: 'The credits contract did not take the spend authorization.',
  },
  not_found: { status: 404, type: request, message: 'There is nothing at this address.' },
  model_not_found: { status: 404, type: request, message: 'There is no model of this name.' },
  method_not_allowed: { status: 405, type: request, message: 'This address does not take that method.' },
  request_timeout: { status: 408, type: request, message: 'The request did not arrive in time.' },
  body_too_large: {
    status: 413,
    type: request,
    message: 'The request body is larger than this gateway takes.',
  },
  unsupported_media_type: {
    status: 415,
    type: request,
    message: 'The request body must be application/json.',
  },
  headers_too_large: {
    status: 431,
    type: request,
    message: 'The request headers are larger than this gateway takes.',
  },
  rate_limit_exceeded: { status: 429, type: 'requests', message: 'Too many requests: wait a little.' },
  daily_quota_exceeded: {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'The requests of this day are used up; the next day begins at midnight UTC.',
    retry: false,
  },
  server_error: {
    status: 500,
    type: 'server_error',
    message: 'Something went wrong here.',
  },
  upstream_error: {
    status: 502,
    type: 'server_error',
    message: "The model's server failed, or gave no answer that can be read.",
  },
  upstream_unavailable: {
    status: 503,
    type: 'server_error',
    message: 'No server of this model can be reached now.',
  },
  chain_unavailable: {
    status: 503,
    type: 'server_error',
    message: 'The chain cannot be reached now, or has not taken the spend authorization in time.',
  },
  ledger_unavailable: { status: 503, type: 'server_error', message: 'The ledger cannot be reached now.' },
  overloaded: { status: 503, type: 'server_error', message: 'This gateway is busy.' },
  upstream_timeout: {
    status: 504,
    type: 'server_error',
    message: "The model's server did not answer in time.",
  },
} as const satisfies Record<string, TableEntry>;

export type OpenAiErrorName = keyof typeof openAiErrors;

/** One refusal as it is sent: as a JSON body with its status, or as the last event of a stream. */
export interface OpenAiError {
  readonly status: number;
  /** False: `x-should-retry: false` belongs beside it. */
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
 * An error of the table, with a sentence that says more where there is one, and the parameter that is meant
 * (`messages[2].content`). Of a client's or a peer's text neither holds more than a name: at most 64 of `A-Za-z0-9_.-`. The
 * words of an upstream come in by {@link requestFault} alone.
 */
export function openAiError(
  name: OpenAiErrorName,
  told: { readonly message?: string; readonly param?: string } = {},
): OpenAiError {
  const { status, type, message, code = name, retry = true }: TableEntry = openAiErrors[name];
  const error = { message: told.message ?? message, type, param: told.param ?? null, code };
  return { status, retry, body: { error } };
}
