import { z } from 'zod';
import { count } from '../../../base/http/values.ts';

/** How many rows of a list a request asks for. */
export const limitOf = (most: number, usual: number, description = 'The most rows of one page.') =>
  z.coerce.number().int().min(1).max(most).default(usual).describe(description);

/** The query of a list whose pages are linked by cursors. */
export const cursorQuery = {
  cursor: z
    .string()
    .max(64)
    .optional()
    .describe('`next` of the previous page; valid only for the same list of the same ledger.'),
  limit: limitOf(1_000, 100),
};

/** The cursor of the next page. */
export const next = z.string().nullable().describe('The cursor of the next page; null on the last page.');

/** The position of the read models in the ledger. */
export const asOf = {
  as_of_seq: count.describe('The last event that the read models include.'),
};
