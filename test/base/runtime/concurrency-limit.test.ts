import { expect, test } from 'vitest';
import { createConcurrencyLimit } from '../../../src/base/runtime/concurrency-limit.ts';

test('only so much work runs simultaneously, in the order in which it came, and work that fails passes its turn on', async () => {
  const turns = createConcurrencyLimit(2);
  const [begun, running] = [[] as number[], new Set<number>()];
  let most = 0;
  const work = (number: number) =>
    turns.take(async () => {
      begun.push(number);
      running.add(number);
      most = Math.max(most, running.size);
      await new Promise((resolve) => setImmediate(resolve));
      running.delete(number);
      if (number % 3 === 0) throw new Error(`${number}`);
      return number;
    });
  const numbers = Array.from({ length: 20 }, (_, index) => index);
  const outcomes = await Promise.allSettled(numbers.map(work));
  expect(begun).toEqual(numbers);
  expect(most).toBe(2);
  expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(numbers.map((n) => n % 3 !== 0));
});
