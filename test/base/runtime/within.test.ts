import { expect, test } from 'vitest';
import { late, within } from '../../../src/base/runtime/within.ts';

const timersNow = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('a promise that settles in time gives its value, and no timer remains', async () => {
  const before = timersNow();
  expect(await within(60_000, Promise.resolve('answer'))).toBe('answer');
  expect(timersNow()).toBe(before);
});

test('a promise that rejects in time rejects, and no timer remains', async () => {
  const before = timersNow();
  await expect(within(60_000, Promise.reject(new Error('refused')))).rejects.toThrow('refused');
  expect(timersNow()).toBe(before);
});

test('a promise that takes longer than the limit is late', async () => {
  expect(await within(1, new Promise<never>(() => {}))).toBe(late);
});
