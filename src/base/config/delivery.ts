import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

export const deliveryShape = {
  timeout_ms: wholeNumber(1, 3_600_000).default(30_000).describe('Time limit of a push'),
  max_call_age_secs: wholeNumber(60, 31_536_000)
    .default(604_800)
    .describe('Age since enqueue or requeue at which an uncompleted call is a dead letter'),
  concurrency_per_runner: wholeNumber(1, 10_000)
    .default(32)
    .describe('Simultaneous pushes of a gateway to a runner'),
} as const;

export interface DeliveryConfig extends ConfigOf<typeof deliveryShape>, Readonly<Constants['delivery']> {
  /** Of a push: it ends after the time limit, so that no call is pushed twice. */
  readonly leaseSecs: number;
}

/** Reads `[delivery]`; undefined after a report. */
export function readDelivery(
  raw: unknown,
  { report, constants: { delivery } }: Pick<Reading, 'report' | 'constants'>,
): DeliveryConfig | undefined {
  const { whole } = readTable(deliveryShape, raw ?? {}, ['delivery'], report);
  return (
    whole && {
      ...whole,
      ...delivery,
      leaseSecs: Math.ceil(whole.timeoutMs / 1_000) + delivery.leaseMarginSecs,
    }
  );
}
