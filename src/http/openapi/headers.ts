import { paymentRequiredV2, settlement } from '../schemas/payment.ts';
import { encodedJson, type JsonObject } from './components.ts';

/** The answers' headers that mean something to a client. */
export const answerHeaders = {
  'PAYMENT-REQUIRED': {
    description: 'The offer in x402 version 2: base64 of JSON. Sign one of its `accepts`.',
    schema: encodedJson(paymentRequiredV2),
  },
  'PAYMENT-RESPONSE': {
    description: 'How a version 2 payment was settled: base64 of JSON.',
    schema: encodedJson(settlement),
  },
  'X-PAYMENT-RESPONSE': {
    description: 'How a version 1 payment was settled: base64 of JSON.',
    schema: encodedJson(settlement),
  },
  Location: {
    description: "The receipt's path.",
    schema: { type: 'string', pattern: '^/x402/receipts/0x[0-9a-f]{64}$' },
  },
  'Retry-After': {
    description: 'Seconds to wait before asking again.',
    schema: { type: 'integer', minimum: 1 },
  },
  'Idempotent-Replayed': {
    description: 'This payment was known already: the answer is its own, as it stands now.',
    schema: { type: 'string', const: 'true' },
  },
  'X-Request-Id': {
    description: "The completion's id, for `GET /v1/generation`; of any other answer, its own.",
    schema: { type: 'string', format: 'uuid' },
  },
  'X-Should-Retry': {
    description: 'Told to clients that would try again by themselves, where it is of no use.',
    schema: { type: 'string', const: 'false' },
  },
  'X-RateLimit-Limit': {
    description: 'Completions a minute.',
    schema: { type: 'integer', minimum: 1 },
  },
  'X-RateLimit-Remaining': {
    description: 'How many may be made now.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'When there will be more, in Unix seconds.',
    schema: { type: 'integer', minimum: 1 },
  },
  'RateLimit-Policy': {
    description: "Every window, as the IETF's draft writes it.",
    schema: { type: 'string', examples: ['"minute";q=10;w=60, "day";q=5;w=86400'] },
  },
  RateLimit: {
    description: 'Where the caller stands in each of them.',
    schema: { type: 'string', examples: ['"minute";r=9;t=60, "day";r=4;t=3600'] },
  },
  'X-Payment-Required': {
    description: 'Atoms of the token that a spend authorization must be of, to pay for this request.',
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  'X-Payment-Token': {
    description: "The token's address.",
    schema: { type: 'string', pattern: '^0x[0-9a-f]{40}$' },
  },
  'X-Payment-Recipient': {
    description: "The operator's address, as a spend authorization names it.",
    schema: { type: 'string', pattern: '^0x[0-9a-f]{40}$' },
  },
  'X-Payment-Network': {
    description: 'The chain, as CAIP-2 names it.',
    schema: { type: 'string', pattern: '^eip155:[1-9][0-9]*$' },
  },
  Allow: {
    description: 'The methods that the address takes.',
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Changes with the body: send it as `If-None-Match`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, JsonObject>;

export type HeaderName = keyof typeof answerHeaders;
