import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const limitsShape = {
  max_body_bytes: wholeNumber(1, 64 * mebibyte)
    .default(mebibyte)
    .describe('The largest body of a job request'),
  requests_per_minute: wholeNumber(0, 1_000_000).default(600).describe('0 switches the limit off'),
  quote_events_per_sec: wholeNumber(0, 1_000_000)
    .default(5)
    .describe(
      'Unpaid quotes that all gateways of the ledger record one by one, where a key authenticates quotes; 0: all are recorded',
    ),
  max_outstanding_calls: wholeNumber(1, 100_000_000)
    .default(10_000)
    .describe(
      'Paid calls that wait or are with a runner; calls of triggers have as many places of their own',
    ),
  least_read_bytes_per_sec: wholeNumber(0, 1_000_000)
    .default(2_048)
    .describe('A client that reads less of its answer for half a minute is cut; 0 cuts none'),
} as const;

export type LimitsConfig = ConfigOf<typeof limitsShape> & Constants['limits'];

/** Reads `[limits]`; undefined after a report. */
export function readLimits(raw: unknown, { report, constants }: Reading): LimitsConfig | undefined {
  const { whole } = readTable(limitsShape, raw ?? {}, ['limits'], report);
  return whole && { ...whole, ...constants.limits };
}
