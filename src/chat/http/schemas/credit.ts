import { credit, keyTerms } from '../../../accounts/http/schemas/budget.ts';
import { z } from 'zod';
import type { Generation } from '../../use-cases/generation.ts';
import { currency, perMillion } from './model.ts';
import { time } from '../../../base/http/values.ts';

export const credits = z
  .strictObject({
    balance: credit.describe('The credit that can be spent now.'),
    held: credit.describe('The credit held for open completions; what they do not cost is released.'),
    total_used: credit.describe('The cost of all completions so far.'),
  })
  .describe('The credit of the account that the key spends from.');
export type CreditsJson = z.infer<typeof credits>;

export const keyState = z
  .strictObject({
    id: z
      .int()
      .min(1)
      .meta({ description: 'The id of the key. It is not secret.', examples: [7] }),
    name: z.string(),
    ...keyTerms,
    remaining: credit.describe(
      'The amount that the key can spend now: the least of what is left of its cap, of its budget and of the balance.',
    ),
    currency,
    requests_per_minute: z.int().min(1),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable().describe('With a precision of one minute.'),
  })
  .describe('The cap, budget and expiry of the key.');
export type KeyStateJson = z.infer<typeof keyState>;

const count = z.int().min(0).nullable();

export const generationQuery = z.strictObject({
  id: z.uuid().describe('The `X-Request-Id` of the completion.'),
});

export const generation = z
  .strictObject({
    id: z.uuid(),
    model: z.string(),
    upstream: z.string().nullable(),
    created_at: time,
    streamed: z.boolean(),
    status: z.enum(['running', 'failed', 'completed', 'cut', 'client_left', 'recovered']),
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    cache_write_tokens: count,
    is_estimate: z.boolean().nullable().describe('Whether the gateway estimated a part of the usage.'),
    price: z
      .strictObject({
        input: perMillion,
        output: perMillion,
        cached_input: perMillion,
        cache_write: perMillion,
      })
      .nullable()
      .describe(
        'What it is charged at, fixed when it was admitted. Null for a free model, and for completions from before this was recorded.',
      ),
    cost: credit.nullable().describe('Its tokens at that price, rounded up, and at most what was held.'),
    held: credit.nullable().describe('The most that it could cost; null without credit.'),
    captured: credit.nullable().describe('What was charged of the hold.'),
    released: credit.nullable().describe('What was returned of the hold.'),
    key_id: z.int().min(1).nullable(),
    ended_at: time.nullable(),
    reason: z.string().nullable().describe('A code, if something went wrong.'),
    events: z
      .array(z.strictObject({ seq: z.int().min(1), type: z.string(), at: time }))
      .describe('Its events in the ledger. `/log/proof?seq=` proves each.'),
    first_byte_ms: count,
    latency_ms: count,
  } satisfies Record<keyof Generation, z.ZodType>)
  .describe('One completion in the ledger, without its prompt and answer.');
