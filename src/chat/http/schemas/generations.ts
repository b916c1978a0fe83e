import { z } from 'zod';
import { visibleName } from '../../../ledger/rules/fields.ts';
import { generation } from './credit.ts';
import { credit } from '../../../accounts/http/schemas/budget.ts';
import { asOf, limitOf, next } from '../../../accounts/http/schemas/list-cursor.ts';
import { currency } from './model.ts';
import { day, usedKey, usedKeyId } from './usage.ts';

const filters = z.strictObject({
  from: day.optional().describe('The first day (UTC) of its admission.'),
  to: day.optional().describe('The last day (UTC).'),
  model: visibleName.optional().describe('Only this model.'),
  key_id: usedKeyId,
  cursor: z
    .string()
    .regex(/^[1-9]\d{0,15}$/)
    .optional()
    .describe('`next` of the previous page; valid only for the same list of the same ledger.'),
});

export const generationsQuery = filters.extend({ limit: limitOf(1_000, 100) });
export const generationsCsvQuery = filters.extend({ limit: limitOf(10_000, 10_000) });
export type GenerationsQuery = z.infer<typeof generationsQuery>;

const { id, model, status, prompt_tokens, completion_tokens, cached_tokens } = generation.shape;

export const generations = z
  .strictObject({
    ...asOf,
    currency,
    rows: z.array(
      z.strictObject({
        id,
        created_at: generation.shape.created_at,
        model,
        key: usedKey,
        status,
        prompt_tokens,
        completion_tokens,
        cached_tokens,
        cost: credit.nullable().describe('Null while it runs, and if nothing was charged because it failed.'),
      }),
    ),
    next,
  })
  .describe('The completions of an account, the newest first, a moment later than the ledger.');
export type GenerationsJson = z.infer<typeof generations>;
