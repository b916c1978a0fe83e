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
    balance: credit.meta({ description: 'What can be spent now.' }),
    held: credit.meta({
      description: 'Set aside for completions under way; what they do not cost comes back.',
    }),
    total_used: credit.meta({ description: 'What all completions have cost.' }),
  })
  .meta({ description: 'Of the account that the key spends from.' });
export type CreditsJson = z.infer<typeof credits>;

export const keyState = z
  .strictObject({
    name: z.string(),
    prefix: z.string().meta({ description: 'How the key begins.', examples: ['sk-net-Ab3xYz'] }),
    models: z.array(z.string()).nullable().meta({ description: 'Those it may use; null: all.' }),
    cap: credit
      .nullable()
      .meta({ description: 'What it may spend in all; null: as much as the account has.' }),
    spent: credit.meta({ description: 'Of that, with what is held.' }),
    remaining: credit.meta({ description: 'What it can spend now, by its cap and by its account.' }),
    currency,
    requests_per_minute: z.int().min(1),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable().meta({ description: 'To the minute.' }),
  })
  .meta({ description: 'What is left of this key.' });
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
    is_estimate: z.boolean().nullable().meta({ description: 'Some of it was counted or bounded here.' }),
    cost: credit.nullable(),
    first_byte_ms: count,
    latency_ms: count,
  } satisfies Record<keyof Generation, z.ZodType>)
  .meta({ description: 'One completion as the ledger tells it: never what was asked or answered.' });
