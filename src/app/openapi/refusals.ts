import { z } from 'zod';
import { openAiErrors, openAiError, type OpenAiErrorName } from '../../base/errors/openai-error.ts';
import { type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import { paymentRequired } from '../../jobs/http/schemas/job.ts';
import { openAiErrorBody } from '../../chat/http/schemas/openai.ts';
import { receiptChallenge } from '../../jobs/http/schemas/receipt.ts';
import { quoteDigest, url } from '../../base/http/values.ts';
import type { HeaderName } from './headers.ts';
import type { DescribedAnswer } from './operation.ts';

const error = z.string().describe('One sentence for a person.');

/** The fields that some codes have besides `error` and `code`. */
const contexts: Partial<Record<RefusalCode, z.ZodRawShape>> = {
  invalid_request: {
    details: z
      .strictObject({
        formErrors: z.array(z.string()),
        fieldErrors: z.record(z.string(), z.array(z.string())),
      })
      .optional()
      .describe('What is wrong with the body, field by field.'),
  },
  unsupported_media_type: { details: z.array(z.string()).min(1) },
  input_invalid: { details: z.array(z.string()).min(1).max(10) },
  payer_signature_required: receiptChallenge,
  siwe_mismatch: {
    reason: z.string().meta({ description: 'Why the message was not accepted.', examples: ['wrong_domain'] }),
  },
  wallet_signature_required: {
    reason: z.string().optional().describe('Why the signature was not accepted.'),
  },
  count_differs: { meant: z.int().nonnegative().describe('How many the batch means.') },
  settlement_pending: { quote_digest: quoteDigest.optional(), receipt_url: url.optional() },
};

/** The refusals of one route, an answer for each status. */
export function refusalAnswers(codes: readonly RefusalCode[], context?: z.ZodRawShape): DescribedAnswer[] {
  const byStatus = Map.groupBy(codes, (code) => refusals[code].status);
  return [...byStatus].map(([status, group]) => ({
    status,
    description: group.map((code) => `- \`${code}\`: ${refusals[code].sentence}`).join('\n'),
    schema: context
      ? z.strictObject({ error, code: z.enum(group), ...context })
      : status === 402 && !group.includes('wallet_signature_required')
        ? paymentRequired
        : refusalSchema(group),
    headers: context && status === 402 ? [] : refusalHeaders(status, group),
  }));
}

function refusalHeaders(status: number, codes: readonly RefusalCode[]): readonly HeaderName[] {
  if (status === 402) return ['PAYMENT-REQUIRED'];
  if (status !== 429 && status !== 503) return [];
  return codes.includes('settlement_pending') ? ['Retry-After', 'Idempotent-Replayed'] : ['Retry-After'];
}

/** One shape for the codes without further fields, and one for each other code. */
function refusalSchema(codes: readonly RefusalCode[]): z.ZodType {
  const plain = codes.filter((code) => !contexts[code]);
  const shapes = [
    ...(plain.length > 0 ? [z.strictObject({ error, code: z.enum(plain) })] : []),
    ...codes.flatMap((code) => {
      const context = contexts[code];
      return context ? [z.strictObject({ error, code: z.literal(code), ...context })] : [];
    }),
  ];
  const [only] = shapes;
  return shapes.length === 1 && only ? only : z.union(shapes);
}

/** The errors of one route of the chat API, an answer for each status. */
export function openAiAnswers(names: readonly OpenAiErrorName[]): DescribedAnswer[] {
  const byStatus = Map.groupBy(names, (name) => openAiErrors[name].status);
  return [...byStatus].map(([status, group]) => ({
    status,
    description: group.map(describeOpenAiError).join('\n'),
    schema: openAiErrorBody,
    headers: openAiHeaders(status, group),
  }));
}

function describeOpenAiError(name: OpenAiErrorName): string {
  const { message, code } = openAiError(name).body.error;
  return `- \`${code}\`: ${message}`;
}

/** Headers of the refusal of a request without payment for a model with a price, if spend authorizations or x402 are accepted. */
const offerHeaders: readonly HeaderName[] = [
  'PAYMENT-REQUIRED',
  'X-Payment-Required',
  'X-Payment-Token',
  'X-Payment-Recipient',
  'X-Payment-Network',
];

/** An unavailable upstream may send `Retry-After`. */
function openAiHeaders(status: number, names: readonly OpenAiErrorName[]): readonly HeaderName[] {
  const retryAfter: HeaderName[] = status === 429 || status >= 502 ? ['Retry-After'] : [];
  const shouldRetry: HeaderName[] = names.some((name) => !openAiError(name).retry) ? ['X-Should-Retry'] : [];
  return [...retryAfter, ...shouldRetry, ...(names.includes('insufficient_funds') ? offerHeaders : [])];
}
