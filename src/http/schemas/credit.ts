import { z } from 'zod';
import type { Generation } from '../../chat/generation.ts';
import { currency } from './model.ts';
import { time } from './values.ts';

/** An amount of the currency. */
export const credit = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,9})(?:\.\d{1,6})?$/)
  .meta({ description: 'In the currency, as a decimal string.', examples: ['4.250001'] });

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
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key.', examples: ['sk-net-Ab3xYz'] }),
    models: z
      .array(z.string())
      .nullable()
      .meta({ description: 'The models that the key may use; null: all.' }),
    cap: credit
      .nullable()
      .meta({ description: 'The most that the key may spend in total; null: no limit beside the balance.' }),
    spent: credit.meta({ description: 'Spent so far, holds included.' }),
    remaining: credit.meta({
      description: 'The amount that the key can spend now: the smaller of its remaining cap and the balance.',
    }),
    currency,
    requests_per_minute: z.int().min(1),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable().meta({ description: 'With a precision of one minute.' }),
  })
  .meta({ description: 'The cap and expiry of the key.' });
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
    is_estimate: z
      .boolean()
      .nullable()
      .meta({ description: 'Whether the gateway estimated a part of the usage.' }),
    cost: credit.nullable(),
    first_byte_ms: count,
    latency_ms: count,
  } satisfies Record<keyof Generation, z.ZodType>)
  .meta({ description: 'One completion in the ledger, without its prompt and answer.' });
