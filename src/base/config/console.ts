import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

export const consoleShape = {
  session_hours: wholeNumber(1, 24)
    .default(12)
    .describe('How long a sign-in with a second factor opens the console'),
} as const;

/** The operators' console. */
export type ConsoleConfig = ConfigOf<typeof consoleShape>;

/** Reads `[console]`; undefined where the table is missing, or after a report. */
export function readConsole(root: RootTable, { report }: Reading): ConsoleConfig | undefined {
  const raw = root.values.console;
  if (raw === undefined) return undefined;
  const { whole } = readTable(consoleShape, raw, ['console'], report);
  if (!root.names('identity')) report.mistake(['console'], 'needs [identity]: operators sign in');
  return whole;
}
