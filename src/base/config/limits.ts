import type { Report } from './report.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const limitsShape = {
  max_body_bytes: wholeNumber(1, 64 * mebibyte).default(mebibyte),
  /** Of all requests in flight together, arriving and processed. */
  max_body_memory_bytes: wholeNumber(mebibyte, 1024 * 1024 * mebibyte).default(512 * mebibyte),
  /** 0 switches the limit off. */
  requests_per_minute: wholeNumber(0, 1_000_000).default(600),
  /** Unpaid quotes that all gateways of the ledger record one by one, where a key authenticates quotes; 0: all are recorded. */
  quote_events_per_sec: wholeNumber(0, 1_000_000).default(5),
  /** Of one gateway to all clients together, where no key authenticates quotes; 0 switches the limit off. */
  quotes_per_second: wholeNumber(0, 1_000_000).default(200),
  /** Paid calls that wait or are with a runner. */
  max_outstanding_calls: wholeNumber(1, 100_000_000).default(10_000),
  /** The same for calls of triggers: they take no place of a paid one. */
  max_triggered_calls: wholeNumber(1, 100_000_000).default(10_000),
  max_unsettled_calls: wholeNumber(1, 100_000_000).default(5_000),
  max_in_flight_requests: wholeNumber(1, 1_000_000).default(2_000),
  /** A client that reads less of its answer for half a minute is cut; 0 cuts none. */
  least_read_bytes_per_sec: wholeNumber(0, 1_000_000).default(2_048),
  /** Of one gateway: requests that wait for a result, whose work has ended. */
  max_waiting_requests: wholeNumber(1, 1_000_000).default(5_000),
  max_waiting_requests_per_client: wholeNumber(1, 1_000_000).default(100),
} as const;

export type LimitsConfig = ConfigOf<typeof limitsShape>;

/** Reads `[limits]`; undefined after a report. */
export function readLimits(raw: unknown, report: Report): LimitsConfig | undefined {
  return readTable(limitsShape, raw ?? {}, ['limits'], report).whole;
}
