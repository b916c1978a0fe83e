import { expect, test } from 'vitest';
import { withChanges } from '../../../src/base/config/constants.ts';
import { readDelivery } from '../../../src/base/config/plain-tables.ts';
import type { Report } from '../../../src/base/config/mistakes.ts';
import { retryDelayMs } from '../../../src/calls/use-cases/record-attempt.ts';

const hourMs = 3_600_000;

test('with the defaults, a call whose runner is unreachable for 12 hours is not lost, whatever the random waits are', () => {
  const report: Report = {
    mistake: (at, message) => expect.unreachable(`${at.join('.')} ${message}`),
    warning: (at, message) => expect.unreachable(`${at.join('.')} ${message}`),
  };
  const delivery = readDelivery(undefined, { report, constants: withChanges({}) });
  if (!delivery) throw new Error('the defaults are valid');
  const waits = Array.from({ length: delivery.maxAttempts - 1 }, (_, failures) => failures);
  const total = (random: number): number =>
    waits.reduce((sumMs, failures) => sumMs + retryDelayMs(delivery, failures, random), 0);
  expect(total(0)).toBeGreaterThan(12 * hourMs);
  expect(total(0.999)).toBeLessThan(26 * hourMs);
  // a runner that is back gets its calls within half an hour
  expect(Math.max(...waits.map((failures) => retryDelayMs(delivery, failures, 0.999)))).toBeLessThanOrEqual(
    hourMs / 2,
  );
});
