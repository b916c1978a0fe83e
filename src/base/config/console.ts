import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { readTable } from './table.ts';

/** The table alone switches the console on. */
export const consoleShape = {} as const;

/** The operators' console. */
export type ConsoleConfig = Constants['console'];

/** Reads `[console]`; undefined if the table is missing, or after a report. */
export function readConsole(root: RootTable, { report, constants }: Reading): ConsoleConfig | undefined {
  const raw = root.values.console;
  if (raw === undefined) return undefined;
  if (!root.names('identity')) report.mistake(['console'], 'needs [identity]: operators sign in');
  return readTable(consoleShape, raw, ['console'], report).whole && constants.console;
}
