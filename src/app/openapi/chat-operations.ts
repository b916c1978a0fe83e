import { credits, generation, generationQuery, keyState } from '../../chat/http/schemas/credit.ts';
import { generations, generationsCsvQuery, generationsQuery } from '../../chat/http/schemas/generations.ts';
import { usage, usageCsvQuery, usageQuery } from '../../chat/http/schemas/usage.ts';
import { model, modelList } from '../../chat/http/schemas/model.ts';
import { chatCompletion, chatRequest } from '../../chat/http/schemas/openai.ts';
import { rateLimitHeaders } from '../../base/http/cors.ts';
import { operations } from './operation.ts';

const ofChat = {
  tag: 'Chat',
  headers: ['X-Request-Id'],
  errors: [
    'invalid_request',
    'rate_limit_exceeded',
    'server_error',
    'ledger_unavailable',
    'ledger_inconsistent',
    'quiet',
    // about the caller's credentials
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
  ],
} as const;
/** For every operation that identifies its caller. */
const spendHeader = {
  name: 'X-Payment-Signature',
  description:
    'A spend authorization instead of a key, if the gateway accepts them: JSON, or its bytes in hexadecimal, with `commitment`, ' +
    '`serviceId`, `jobIndex`, `amount`, `operator`, `nonce`, `expiry` and `signature` (EIP-712, `ShieldedCredits` version 1).',
} as const;
const secretHeader = {
  name: 'X-Payment-Secret',
  description:
    'With a spend authorization: 16 to 128 random visible ASCII characters. A spend that was sent to its chain is public and pays ' +
    'for the first request it was sent with alone; the same secret and body show that a repeated request comes from the same client.',
} as const;
const paymentHeader = {
  name: 'PAYMENT-SIGNATURE',
  description:
    'A payment of x402 for this request alone, in place of any credential, where completions are sold so.',
} as const;
const ofKey = { security: 'apiKey' } as const;

export const chatOperations = operations(ofChat, {
  'POST /v1/chat/completions': {
    id: 'createChatCompletion',
    summary: 'Create a completion',
    description: `OpenAI's request and answer; the answer is byte for byte that of the upstream. Without a key: models of the free tier.

With \`stream\` the answer is a stream of events that ends with \`data: [DONE]\`. If the connection to the upstream breaks, it
ends with an event \`{"error": …}\` and no \`[DONE]\`. A client that disconnects pays for the prompt and for the output so far.

For a model with a price the most that the completion can cost is held before the upstream is called; the unused part is
released afterwards. Limits count admitted requests; a refused request counts towards none of them.

With a spend authorization its whole amount is paid on chain: the spend lands before the upstream is called. If nothing was
delivered, the spend is not paid out, and the same authorization can be sent again with the same body and \`X-Payment-Secret\`.

Where completions are sold without an account, the 402 of a request without a credential has \`PAYMENT-REQUIRED\`, as the 402 of a
paid job: sign the most that this request may cost by \`upto\`, and send it again with \`PAYMENT-SIGNATURE\`. What it has cost is
taken once the answer has ended, and the same payment gets the same answer again. A request with \`PAYMENT-SIGNATURE\` is refused as
that of a paid job is.`,
    security: 'optionalApiKey',
    body: { schema: chatRequest },
    requestHeaders: [spendHeader, secretHeader, paymentHeader],
    headers: ['X-Request-Id', ...rateLimitHeaders],
    answers: [
      {
        status: 200,
        description: 'The answer.',
        schema: chatCompletion,
        events: "OpenAI's chunks. Lines that begin with a colon are comments.",
      },
    ],
    errors: [
      'invalid_json',
      'missing_required_parameter',
      'invalid_type',
      'invalid_value',
      'invalid_parameter_combination',
      'unsupported_parameter',
      'insufficient_funds',
      'key_budget_reached',
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
  },
  'GET /v1/models': {
    id: 'listModels',
    summary: 'List the models',
    description: "OpenAI's list with prices and context lengths.",
    security: 'optionalApiKey',
    answers: [{ status: 200, description: 'The list.', schema: modelList }],
  },
  'GET /v1/models/{model}': {
    id: 'getModel',
    summary: 'One model',
    description: 'The same object as in the list.',
    security: 'optionalApiKey',
    answers: [{ status: 200, description: 'The model.', schema: model }],
    errors: ['model_not_found'],
  },
  'GET /v1/credits': {
    ...ofKey,
    id: 'getCredits',
    summary: "The account's credit",
    description: 'The current credit of the account that the key spends from.',
    answers: [{ status: 200, description: 'The credit.', schema: credits }],
  },
  'GET /v1/key': {
    ...ofKey,
    id: 'getKey',
    summary: 'The cap, budget and expiry of this key',
    description: 'The cap and the budget of the key, how much of them is spent, and when the key expires.',
    answers: [{ status: 200, description: 'The key.', schema: keyState }],
  },
  'GET /v1/generation': {
    ...ofKey,
    id: 'getGeneration',
    summary: 'The outcome of a completion',
    description: 'A completion of another account is 404.',
    query: generationQuery,
    answers: [{ status: 200, description: 'The completion.', schema: generation }],
    errors: ['not_found'],
  },
  'GET /v1/usage': {
    ...ofKey,
    id: 'getUsage',
    summary: 'What the account used',
    description: `Requests, tokens and cost by day, model and key, from sums that lag the ledger by a moment (\`as_of_seq\`).
At most 400 days.`,
    query: usageQuery,
    answers: [{ status: 200, description: 'A page of sums.', schema: usage }],
  },
  'GET /v1/usage.csv': {
    ...ofKey,
    id: 'getUsageCsv',
    summary: 'What the account used, as CSV',
    description:
      'The rows of `/v1/usage`. If there are more than `limit`, the header `Link` has the next page.',
    query: usageCsvQuery,
    answers: [
      {
        status: 200,
        description: 'A header and one line per row (RFC 4180).',
        bytes: 'text/csv',
        headers: ['Link'],
      },
    ],
  },
  'GET /v1/generations': {
    ...ofKey,
    id: 'listGenerations',
    summary: 'The completions of the account',
    description: 'The newest first, from a read model that lags the ledger by a moment (`as_of_seq`).',
    query: generationsQuery,
    answers: [{ status: 200, description: 'A page of completions.', schema: generations }],
  },
  'GET /v1/generations.csv': {
    ...ofKey,
    id: 'listGenerationsAsCsv',
    summary: 'The completions of the account, as CSV',
    description:
      'The rows of `/v1/generations`. If there are more than `limit`, the header `Link` has the next page.',
    query: generationsCsvQuery,
    answers: [
      {
        status: 200,
        description: 'A header and one line per row (RFC 4180).',
        bytes: 'text/csv',
        headers: ['Link'],
      },
    ],
  },
});
