import { expect, test } from 'vitest';
import { createOutages } from '../../../src/base/runtime/outages.ts';

class LossError extends Error {}

test('the failures of one outage are one line, and its end says how long it was and how many lines were left out', () => {
  let nowMs = 0;
  const outages = createOutages(
    (error) => error instanceof LossError,
    () => nowMs,
  );
  expect(outages.worked()).toBeUndefined();
  expect(outages.hear(new Error('another'))).toBeUndefined();
  expect(outages.hear(new LossError())).toBe('begins');
  nowMs = 60_000;
  for (let count = 0; count < 1_160; count++) expect(outages.hear(new LossError())).toBe('known');
  nowMs += 4_999;
  // a failure may follow at once
  expect(outages.worked()).toBeUndefined();
  nowMs += 1;
  expect(outages.worked()).toEqual({ away_secs: 60, left_out_lines: 1_160 });
  expect(outages.worked()).toBeUndefined();
  expect(outages.hear(new LossError())).toBe('begins');
});
