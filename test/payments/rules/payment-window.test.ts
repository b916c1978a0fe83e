import { expect, test } from 'vitest';
import { sharedAppendMs } from '../../../src/payments/rules/payment-window.ts';

test('an append of a payment waits for others for a hundredth of what settling takes, and for 10 ms at most', () => {
  expect([0, 20, 99, 100, 640, 1_500, 60_000].map(sharedAppendMs)).toEqual([0, 0, 0, 1, 6, 10, 10]);
});
