import { expect, test } from 'vitest';
import { poll } from '../../../src/base/runtime/poll.ts';

const pauses = { firstMs: 1, longestMs: 4 };

test('polling ends with the first final answer', async () => {
  let asked = 0;
  const answer = await poll(async () => ++asked, { until: (n) => n === 3, timeoutMs: 60_000, pauses });
  expect(answer).toBe(3);
  expect(asked).toBe(3);
});

test('polling returns the last answer where the next pause would outlast the time limit', async () => {
  let asked = 0;
  const answer = await poll(async () => ++asked, { until: () => false, timeoutMs: 0, pauses });
  expect(answer).toBe(1);
  expect(asked).toBe(1);
});

test('each attempt gets the remaining time, at least one millisecond', async () => {
  const remaining: number[] = [];
  await poll(async (remainingMs) => remaining.push(remainingMs), {
    until: (count) => count === 3,
    timeoutMs: 60_000,
    pauses,
  });
  expect(remaining).toHaveLength(3);
  expect(remaining[0]).toBeLessThanOrEqual(60_000);
  expect(remaining[2]).toBeLessThan(remaining[0] ?? 0);
  await poll(async (remainingMs) => remaining.push(remainingMs), { until: () => true, timeoutMs: 0, pauses });
  expect(remaining[3]).toBe(1);
});

test('a question that fails ends the polling with its error', async () => {
  const failing = poll(() => Promise.reject(new Error('no node')), {
    until: () => true,
    timeoutMs: 60_000,
    pauses,
  });
  await expect(failing).rejects.toThrow('no node');
});
