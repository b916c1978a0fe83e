import { z } from 'zod';
import { visibleName } from '../../../ledger/rules/fields.ts';
import { usageDimensions } from '../../store/usage.ts';
import { credit } from '../../../accounts/http/schemas/budget.ts';
import { currency } from './model.ts';
import { asOf, limitOf, next } from '../../../accounts/http/schemas/list-cursor.ts';

/** The first and the last day of one request. */
export const maxDaysApart = 400;
const dayMs = 86_400_000;
// the database has no year 0, which 29 days before the first ones may be
export const day = z.iso.date().refine((text) => text >= '1000');

export const usedKeyId = z.coerce
  .number()
  .int()
  .min(0)
  .max(Number.MAX_SAFE_INTEGER)
  .optional()
  .describe('Only this key; 0: requests of sessions.');

const usageFilters = z.strictObject({
  from: day.optional().describe('The first day (UTC); by default 29 days before `to`.'),
  to: day.optional().describe('The last day (UTC); by default today.'),
  by: z
    .string()
    .default('day,model,key')
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(usageDimensions)).min(1).max(3))
    .describe('What the rows are sums by: `day`, `model` and `key` with commas between, or some of them.'),
  model: visibleName.optional().describe('Only this model.'),
  key_id: usedKeyId,
  cursor: z.string().max(1_000).optional().describe('`next` of the previous page.'),
});

export const usageQuery = usageFilters.extend({
  limit: limitOf(1_000, 100),
});
export const usageCsvQuery = usageFilters.extend({
  limit: limitOf(10_000, 10_000, 'The most rows of one file.'),
});
export type UsageQuery = z.infer<typeof usageQuery>;

/** The days of a query; undefined if they are in the wrong order or too many. */
export function daysOf(
  { from, to }: Pick<UsageQuery, 'from' | 'to'>,
  nowMs: number,
): { readonly from: string; readonly to: string } | undefined {
  const last = to ?? new Date(nowMs).toISOString().slice(0, 10);
  const first = from ?? new Date(Date.parse(last) - 29 * dayMs).toISOString().slice(0, 10);
  const days = (Date.parse(last) - Date.parse(first)) / dayMs;
  return days >= 0 && days <= maxDaysApart ? { from: first, to: last } : undefined;
}

/** The cursor of a list by some dimensions: the place of its last row. It can only lead to rows of the same account. */
export const usagePlace = z.strictObject({
  day: day.optional(),
  model: visibleName.optional(),
  key_id: z.int().min(0).optional(),
});

export const usedKey = z
  .strictObject({
    id: z.int().min(1),
    name: z.string().nullable().describe('Null once the key is deleted.'),
  })
  .nullable()
  .describe('Null for requests of sessions.');

const digits = z.string().regex(/^\d{1,40}$/);

export const usage = z
  .strictObject({
    ...asOf,
    from: day,
    to: day,
    currency,
    rows: z.array(
      z
        .strictObject({
          day: day.nullable(),
          model: z.string().nullable(),
          key: usedKey,
          requests: digits.describe('Completions with an answer, or a part of one.'),
          failed: digits.describe('Completions without one; they cost nothing.'),
          prompt_tokens: digits,
          completion_tokens: digits,
          cached_tokens: digits.describe('The part of the prompts that upstreams read from their caches.'),
          cost: credit,
        })
        .describe('What is not in `by` is null.'),
    ),
    next,
  })
  .describe(
    'What the completions of an account used, by the UTC day of their admission: the newest day first, then by model and key.',
  );
export type UsageJson = z.infer<typeof usage>;
