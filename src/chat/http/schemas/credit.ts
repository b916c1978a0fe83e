import { credit, keyTerms } from '../../../accounts/http/schemas/budget.ts';
import { z } from 'zod';
import type { Generation } from '../../use-cases/generation.ts';
import { currency, perMillion } from './model.ts';
import { time } from '../../../base/http/values.ts';

export const credits = z
  .strictObject({
    balance: credit.meta({ description: 'The credit that can be spent now.' }),
    held: credit.meta({
      description: 'The credit held for open completions; what they do not cost is released.',
    }),
    total_used: credit.meta({ description: 'The cost of all completions so far.' }),
  })
  .meta({ description: 'The credit of the account that the key spends from.' });
export type CreditsJson = z.infer<typeof credits>;

export const keyState = z
  .strictObject({
    id: z
      .int()
      .min(1)
      .meta({ description: 'The id of the key. It is not secret.', examples: [7] }),
    name: z.string(),
    ...keyTerms,
    remaining: credit.meta({
      description:
        'The amount that the key can spend now: the least of what is left of its cap, of its budget and of the balance.',
    }),
    currency,
    requests_per_minute: z.int().min(1),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable().meta({ description: 'With a precision of one minute.' }),
  })
  .meta({ description: 'The cap, budget and expiry of the key.' });
export type KeyStateJson = z.infer<typeof keyState>;

const count = z.int().min(0).nullable();

export const generationQuery = z.strictObject({
  id: z.uuid().meta({ description: 'The `X-Request-Id` of the completion.' }),
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
    is_estimate: z
      .boolean()
      .nullable()
      .meta({ description: 'Whether the gateway estimated a part of the usage.' }),
    price: z
      .strictObject({
        input: perMillion,
        output: perMillion,
        cached_input: perMillion,
        cache_write: perMillion,
      })
      .nullable()
      .meta({
        description:
          'What it is charged at, fixed when it was admitted. Null for a free model, and for completions from before this was recorded.',
      }),
    cost: credit
      .nullable()
      .meta({ description: 'Its tokens at that price, rounded up, and at most what was held.' }),
    held: credit.nullable().meta({ description: 'The most that it could cost; null without credit.' }),
    captured: credit.nullable().meta({ description: 'What was charged of the hold.' }),
    released: credit.nullable().meta({ description: 'What was returned of the hold.' }),
    key_id: z.int().min(1).nullable(),
    ended_at: time.nullable(),
    reason: z.string().nullable().meta({ description: 'A code, if something went wrong.' }),
    events: z
      .array(z.strictObject({ seq: z.int().min(1), type: z.string(), at: time }))
      .meta({ description: 'Its events in the ledger. `/log/proof?seq=` proves each.' }),
    first_byte_ms: count,
    latency_ms: count,
  } satisfies Record<keyof Generation, z.ZodType>)
  .meta({ description: 'One completion in the ledger, without its prompt and answer.' });
