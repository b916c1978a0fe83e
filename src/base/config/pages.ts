import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { type ConfigOf, readTable } from './table.ts';
import { matching } from './values.ts';

export const pagesShape = {
  name: matching(/^(?=\S)[^\p{C}\p{Zl}\p{Zp}]{1,40}$/u, 'must be 1 to 40 characters on one line')
    .default('Tollbook')
    .describe('Name on the pages'),
} as const;
/** The table alone switches the console on. */
export const consoleShape = {} as const;

/** The customers' pages. */
export type PagesConfig = ConfigOf<typeof pagesShape>;
/** The operators' console. */
export type ConsoleConfig = Constants['console'];

/** Reads `[pages]`; undefined if the table is missing, or after a report. */
export function readPages(root: RootTable, { report }: Reading): PagesConfig | undefined {
  const raw = root.values.pages;
  if (raw === undefined) return undefined;
  if (!root.names('identity')) report.mistake(['pages'], 'needs [identity]: customers sign in');
  return readTable(pagesShape, raw, ['pages'], report).whole;
}

/** Reads `[console]`; undefined if the table is missing, or after a report. */
export function readConsole(root: RootTable, { report, constants }: Reading): ConsoleConfig | undefined {
  const raw = root.values.console;
  if (raw === undefined) return undefined;
  if (!root.names('identity')) report.mistake(['console'], 'needs [identity]: operators sign in');
  return readTable(consoleShape, raw, ['console'], report).whole && constants.console;
}
