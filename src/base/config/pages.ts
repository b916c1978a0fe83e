import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { type ConfigOf, readTable } from './table.ts';
import { matching } from './values.ts';

export const pagesShape = {
  name: matching(/^(?=\S)[^\p{C}\p{Zl}\p{Zp}]{1,40}$/u, 'must be 1 to 40 characters on one line')
    .default('Tollbook')
    .describe('Name on the pages'),
} as const;

/** The customers' pages. */
export type PagesConfig = ConfigOf<typeof pagesShape>;

/** Reads `[pages]`; undefined if the table is missing, or after a report. */
export function readPages(root: RootTable, { report }: Reading): PagesConfig | undefined {
  const raw = root.values.pages;
  if (raw === undefined) return undefined;
  if (!root.names('identity')) report.mistake(['pages'], 'needs [identity]: customers sign in');
  return readTable(pagesShape, raw, ['pages'], report).whole;
}
