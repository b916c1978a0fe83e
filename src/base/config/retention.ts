import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

/** How long data outside the ledger is kept. What has no period here has a constant one, here or in the worker that deletes it. */
export const retentionShape = {
  results_days: wholeNumber(1, 36_500)
    .default(30)
    .describe(
      'Results of calls, from when they were stored; callbacks, from when they were named; reasons of refund requests',
    ),
} as const;

export type RetentionConfig = ConfigOf<typeof retentionShape> & Constants['retention'];

/** Reads `[retention]`; undefined after a report. */
export function readRetention(raw: unknown, { report, constants }: Reading): RetentionConfig | undefined {
  const { whole } = readTable(retentionShape, raw ?? {}, ['retention'], report);
  return whole && { ...whole, ...constants.retention };
}
