import { expect, test } from 'vitest';
import { sharedAppendMs } from '../../../src/jobs/use-cases/record-settlement.ts';

const waitMs = (settleMs: number): number =>
  sharedAppendMs({ facilitator: { typicalSettleMs: () => settleMs } });

test('an append of a payment waits for others for a hundredth of what settling takes, and for 10 ms at most', () => {
  expect([0, 20, 99, 100, 640, 1_500, 60_000].map(waitMs)).toEqual([0, 0, 0, 1, 6, 10, 10]);
});
