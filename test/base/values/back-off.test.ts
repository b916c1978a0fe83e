import { expect, test } from 'vitest';
import { backOffMs, withJitterMs } from '../../../src/base/values/back-off.ts';

test('the waits double from the first to the longest', () => {
  const waits = [0, 1, 2, 3, 4].map((failures) => backOffMs({ firstMs: 200, longestMs: 1_000 }, failures));
  expect(waits).toEqual([200, 400, 800, 1_000, 1_000]);
});

test('the waits grow by a given factor', () => {
  const waits = [0, 1, 2, 3].map((failures) =>
    backOffMs({ firstMs: 100, longestMs: 300, factor: 1.5 }, failures),
  );
  expect(waits).toEqual([100, 150, 225, 300]);
});

test('the wait stays a number however many attempts have failed', () => {
  expect(backOffMs({ firstMs: 1, longestMs: 60_000 }, 1e9)).toBe(60_000);
  expect(backOffMs({ firstMs: 0, longestMs: 60_000 }, 1e9)).toBe(0);
});

test('jitter keeps the given share of the wait and never exceeds it', () => {
  expect(withJitterMs(1_000, 0)).toBe(0);
  expect(withJitterMs(1_000, 0.25)).toBe(250);
  expect(withJitterMs(1_000, 0, 0.5)).toBe(500);
  expect(withJitterMs(1_000, 0.999, 0.5)).toBeCloseTo(999.5);
});
