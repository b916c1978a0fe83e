import { z } from 'zod';
import { walletChallenge } from '../../jobs/http/schemas/wallet.ts';
import { paymentRequiredV2, settlement } from '../../payments/http/payment.ts';
import { encodedJson, type JsonObject } from './components.ts';

const string = (description: string, more: JsonObject = {}) => ({
  description,
  schema: { type: 'string', ...more },
});
const integer = (description: string, minimum: number) => ({
  description,
  schema: { type: 'integer', minimum },
});

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
  Location: string("The receipt's path; of a sign-in, the page that continues it.", {
    format: 'uri-reference',
  }),
  Link: string('The next page (`rel="next"`).'),
  'Content-Range': string('Which bytes these are, and of how many (RFC 9110).', {
    examples: ['bytes 0-99/5000000'],
  }),
  'Retry-After': integer('Seconds to wait before the next request.', 1),
  'Preference-Applied': string('The time of `Prefer` that was waited for, at most.', {
    examples: ['wait=30'],
  }),
  'Idempotent-Replayed': string('The payment is a known payment: the answer is its current outcome.', {
    const: 'true',
  }),
  'X-Request-Id': string(
    "The completion's id, for `GET /v1/generation`; on other answers, the id of the request.",
    { format: 'uuid' },
  ),
  'X-Should-Retry': string('Tells clients with automatic retries that a retry cannot succeed.', {
    const: 'false',
  }),
  'X-RateLimit-Limit': integer('Completions per minute.', 1),
  'X-RateLimit-Remaining': integer('Completions that are still allowed in this window.', 0),
  'X-RateLimit-Reset': integer('When more completions are allowed, in Unix seconds.', 1),
  'RateLimit-Policy': string('Every window, in the format of the IETF draft.', {
    examples: ['"minute";q=10;w=60, "day";q=5;w=86400'],
  }),
  RateLimit: string("The caller's remaining requests in each window.", {
    examples: ['"minute";r=9;t=60, "day";r=4;t=3600'],
  }),
  'X-Payment-Required': string(
    'The amount, in atoms of the token, of a spend authorization that pays for this request.',
    { pattern: '^[1-9][0-9]*$' },
  ),
  'X-Payment-Token': string("The token's address.", { pattern: '^0x[0-9a-f]{40}$' }),
  'X-Payment-Recipient': string("The operator's address, the `operator` of a spend authorization.", {
    pattern: '^0x[0-9a-f]{40}$',
  }),
  'X-Payment-Network': string('The CAIP-2 name of the chain.', { pattern: '^eip155:[1-9][0-9]*$' }),
  'Tollbook-As-Of': integer(
    'Where the operator has read replicas: the answer shows every event up to this one.',
    0,
  ),
  'Tollbook-As-Of-Time': string('When that was so.', { format: 'date-time' }),
  Allow: string('The methods that the path supports.'),
  ETag: string('Changes with the body. Send it as `If-None-Match`.'),
} as const satisfies Record<string, JsonObject>;

export type HeaderName = keyof typeof answerHeaders;

/** Of answers that a replica may have given; left out where there is none. */
export const asOfHeaders = ['Tollbook-As-Of', 'Tollbook-As-Of-Time'] as const satisfies readonly HeaderName[];
