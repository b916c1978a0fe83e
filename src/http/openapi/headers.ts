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
  ETag: {
    description: 'Changes with the body: send it as `If-None-Match`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, JsonObject>;

export type HeaderName = keyof typeof answerHeaders;
