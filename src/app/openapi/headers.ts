import { z } from 'zod';
import { walletChallenge } from '../../jobs/http/schemas/wallet.ts';
import { paymentRequiredV2, settlement } from '../../payments/http/payment.ts';
import { encodedJson, type JsonObject } from './components.ts';

/** The documented headers of answers. */
export const answerHeaders = {
  'PAYMENT-REQUIRED': {
    description:
      'The offer in x402 version 2: base64 of JSON. Sign one of its `accepts`; or, for the paid calls of a wallet, the challenge.',
    schema: encodedJson(z.union([paymentRequiredV2, walletChallenge])),
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
    description: "The receipt's path; of a sign-in, the page that continues it.",
    schema: { type: 'string', format: 'uri-reference' },
  },
  Link: {
    description: 'The next page (`rel="next"`).',
    schema: { type: 'string' },
  },
  'Content-Range': {
    description: 'Which bytes these are, and of how many (RFC 9110).',
    schema: { type: 'string', examples: ['bytes 0-99/5000000'] },
  },
  'Retry-After': {
    description: 'Seconds to wait before the next request.',
    schema: { type: 'integer', minimum: 1 },
  },
  'Preference-Applied': {
    description: 'The time of `Prefer` that was waited for, at most.',
    schema: { type: 'string', examples: ['wait=30'] },
  },
  'Idempotent-Replayed': {
    description: 'The payment is a known payment: the answer is its current outcome.',
    schema: { type: 'string', const: 'true' },
  },
  'X-Request-Id': {
    description: "The completion's id, for `GET /v1/generation`; on other answers, the id of the request.",
    schema: { type: 'string', format: 'uuid' },
  },
  'X-Should-Retry': {
    description: 'Tells clients with automatic retries that a retry cannot succeed.',
    schema: { type: 'string', const: 'false' },
  },
  'X-RateLimit-Limit': {
    description: 'Completions per minute.',
    schema: { type: 'integer', minimum: 1 },
  },
  'X-RateLimit-Remaining': {
    description: 'Completions that are still allowed in this window.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'When more completions are allowed, in Unix seconds.',
    schema: { type: 'integer', minimum: 1 },
  },
  'RateLimit-Policy': {
    description: 'Every window, in the format of the IETF draft.',
    schema: { type: 'string', examples: ['"minute";q=10;w=60, "day";q=5;w=86400'] },
  },
  RateLimit: {
    description: "The caller's remaining requests in each window.",
    schema: { type: 'string', examples: ['"minute";r=9;t=60, "day";r=4;t=3600'] },
  },
  'X-Payment-Required': {
    description: 'The amount, in atoms of the token, of a spend authorization that pays for this request.',
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  'X-Payment-Token': {
    description: "The token's address.",
    schema: { type: 'string', pattern: '^0x[0-9a-f]{40}$' },
  },
  'X-Payment-Recipient': {
    description: "The operator's address, the `operator` of a spend authorization.",
    schema: { type: 'string', pattern: '^0x[0-9a-f]{40}$' },
  },
  'X-Payment-Network': {
    description: 'The CAIP-2 name of the chain.',
    schema: { type: 'string', pattern: '^eip155:[1-9][0-9]*$' },
  },
  Allow: {
    description: 'The methods that the path supports.',
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Changes with the body. Send it as `If-None-Match`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, JsonObject>;

export type HeaderName = keyof typeof answerHeaders;
