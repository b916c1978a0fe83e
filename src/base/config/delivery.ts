import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { type ConfigOf, readTable, type Table } from './table.ts';
import { wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const deliveryShape = {
  max_attempts: wholeNumber(1, 1_000).default(60).describe('Then a call is a dead letter'),
  backoff_cap_ms: wholeNumber(1, 86_400_000)
    .default(1_800_000)
    .describe('Longest pause between attempts; the first is a second'),
  timeout_ms: wholeNumber(1, 3_600_000).default(30_000).describe('Time limit of a push'),
  lease_secs: wholeNumber(1, 86_400).default(60).describe('Lease of a push: more than `timeout_ms`'),
  max_call_age_secs: wholeNumber(60, 31_536_000)
    .default(604_800)
    .describe('Age since enqueue or requeue at which an uncompleted call is a dead letter'),
  concurrency_per_runner: wholeNumber(1, 10_000)
    .default(32)
    .describe('Simultaneous pushes of a gateway to a runner'),
  max_result_bytes: wholeNumber(0, 64 * mebibyte)
    .default(mebibyte)
    .describe('Largest result that the database stores'),
} as const;

export type DeliveryConfig = ConfigOf<typeof deliveryShape> & Constants['delivery'];

/** Reads `[delivery]`; undefined after a report. */
export function readDelivery(
  raw: unknown,
  { report, constants }: Pick<Reading, 'report' | 'constants'>,
): DeliveryConfig | undefined {
  const table = readTable(deliveryShape, raw ?? {}, ['delivery'], report);
  checkTimes(table, report);
  return table.whole && { ...table.whole, ...constants.delivery };
}

function checkTimes({ at, values }: Table<typeof deliveryShape>, report: Report): void {
  const { timeoutMs, leaseSecs } = values;
  if (timeoutMs !== undefined && leaseSecs !== undefined && leaseSecs * 1_000 <= timeoutMs)
    report.warning(
      [...at, 'lease_secs'],
      `ends before a push times out (${timeoutMs} ms): calls may be pushed twice`,
    );
}
