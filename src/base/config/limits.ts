import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const limitsShape = {
  max_body_bytes: wholeNumber(1, 64 * mebibyte)
    .default(mebibyte)
    .describe('Largest body of a job request'),
  requests_per_minute: wholeNumber(0, 1_000_000)
    .default(600)
    .describe('Requests without a settlement or completion; 0: no limit'),
  max_outstanding_calls: wholeNumber(1, 100_000_000)
    .default(10_000)
    .describe('Paid calls that wait or are with a runner; triggers have as many more'),
} as const;

export type LimitsConfig = ConfigOf<typeof limitsShape> & Constants['limits'];

/** Reads `[limits]`; undefined after a report. */
export function readLimits(raw: unknown, { report, constants }: Reading): LimitsConfig | undefined {
  const { whole } = readTable(limitsShape, raw ?? {}, ['limits'], report);
  return whole && { ...whole, ...constants.limits };
}
