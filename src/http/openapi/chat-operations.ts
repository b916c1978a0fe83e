import type { OpenAiErrorName } from '../../domain/errors/openai-error.ts';
import { credits, generation, generationQuery, keyState } from '../schemas/credit.ts';
import { model, modelList } from '../schemas/model.ts';
import { chatCompletion, chatRequest } from '../schemas/openai.ts';
import { routingReadiness } from '../schemas/status.ts';
import type { Operation } from './operation.ts';

const everyRoute = [
  'invalid_request',
  'rate_limit_exceeded',
  'server_error',
  'ledger_unavailable',
] as const satisfies readonly OpenAiErrorName[];
/** What can speak against who asks. */
const callerErrors = [
  'conflicting_credentials',
  'invalid_api_key',
  'invalid_amount',
  'below_min_charge',
  'exceeds_max_spend',
  'operator_mismatch',
  'service_id_mismatch',
  'invalid_spend_auth',
  'signer_mismatch',
  'insufficient_balance',
  'chain_unavailable',
] as const satisfies readonly OpenAiErrorName[];
/** Wherever it is asked who calls. */
const spendHeader = {
  name: 'X-Payment-Signature',
  description:
    'A spend authorization instead of a key, where the gateway takes them: JSON or the hexadecimal of it, with `commitment`, ' +
    '`serviceId`, `jobIndex`, `amount`, `operator`, `nonce`, `expiry` and `signature` (EIP-712, `ShieldedCredits` version 1).',
} as const;
const ofChat = { tag: 'Chat', refusals: [], headers: ['X-Request-Id'] } as const;

export const chatOperation: Operation = {
  ...ofChat,
  method: 'post',
  path: '/v1/chat/completions',
  id: 'createChatCompletion',
  summary: 'Make a completion',
  description: `OpenAI's request and answer, byte for byte as the model's server gives it. Without a key: models of the free tier.

With \`stream\` the answer is a stream of events. It ends with \`data: [DONE]\`; where the model's server is lost in
the middle, with an event \`{"error": …}\` and no \`[DONE]\`. A client that leaves pays for the prompt and for what was written by then.

On a model with a price what the completion can cost at most is held before its server is asked, and what it does not
cost comes back. Limits count what was admitted; a refusal charges none of them.

With a spend authorization all of its amount is paid, on the chain: it lands there before the model's server is asked. Where
nothing was delivered nothing is claimed, and the same authorization can be sent again.`,
  security: 'optionalApiKey',
  body: { schema: chatRequest },
  requestHeaders: [spendHeader],
  headers: [
    'X-Request-Id',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'RateLimit-Policy',
    'RateLimit',
  ],
  answers: [
    {
      status: 200,
      description: 'The answer.',
      schema: chatCompletion,
      events: "OpenAI's chunks. Lines that begin with a colon are comments.",
    },
  ],
  errors: [
    ...everyRoute,
    ...callerErrors,
    'invalid_json',
    'missing_required_parameter',
    'invalid_type',
    'invalid_value',
    'invalid_parameter_combination',
    'unsupported_parameter',
    'insufficient_funds',
    'nonce_replay',
    'spend_replay',
    'spend_in_progress',
    'authorization_failed',
    'model_not_found',
    'request_timeout',
    'body_too_large',
    'unsupported_media_type',
    'daily_quota_exceeded',
    'upstream_error',
    'upstream_unavailable',
    'overloaded',
    'upstream_timeout',
  ],
};

export const modelsOperation: Operation = {
  ...ofChat,
  method: 'get',
  path: '/v1/models',
  id: 'listModels',
  summary: 'The models',
  description: "OpenAI's list, with prices and lengths beside it.",
  security: 'optionalApiKey',
  answers: [{ status: 200, description: 'The list.', schema: modelList }],
  errors: [...everyRoute, ...callerErrors],
};

export const modelOperation: Operation = {
  ...ofChat,
  method: 'get',
  path: '/v1/models/{model}',
  id: 'getModel',
  summary: 'One model',
  description: 'As it stands in the list.',
  security: 'optionalApiKey',
  answers: [{ status: 200, description: 'The model.', schema: model }],
  errors: [...everyRoute, ...callerErrors, 'model_not_found'],
};

const ofKey = {
  ...ofChat,
  method: 'get',
  security: 'apiKey',
  errors: [...everyRoute, ...callerErrors],
} as const satisfies Partial<Operation>;

export const creditsOperation: Operation = {
  ...ofKey,
  path: '/v1/credits',
  id: 'getCredits',
  summary: "The account's credit",
  description: 'Of the account that the key spends from, as it stands now.',
  answers: [{ status: 200, description: 'The credit.', schema: credits }],
};

export const keyOperation: Operation = {
  ...ofKey,
  path: '/v1/key',
  id: 'getKey',
  summary: 'What is left of this key',
  description: 'Its cap, what it has spent, until when it holds.',
  answers: [{ status: 200, description: 'The key.', schema: keyState }],
};

export const generationOperation: Operation = {
  ...ofKey,
  path: '/v1/generation',
  id: 'getGeneration',
  summary: 'What became of a completion',
  description: 'Of this account only: any other is 404.',
  query: generationQuery,
  answers: [{ status: 200, description: 'The completion.', schema: generation }],
  errors: [...ofKey.errors, 'not_found'],
};

export const routingReadyOperation: Operation = {
  ...ofChat,
  method: 'get',
  path: '/v1/ready',
  id: 'getRoutingReadiness',
  tag: 'Status',
  summary: 'Whether completions can be made',
  description: 'The 503 says what is in the way.',
  answers: [
    {
      status: 200,
      description: 'The ledger answers, and some model can be asked.',
      schema: routingReadiness,
    },
    { status: 503, description: 'They cannot, or the gateway is going down.', schema: routingReadiness },
  ],
};
