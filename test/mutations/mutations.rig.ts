import { expect, test } from 'vitest';
import { catchByName, failingAnyway } from './catch.ts';
import { mutations } from './mutations.ts';

test('three of the mutations, others every day, are caught by the tests that are named for them', async () => {
  const day = Math.floor(Date.now() / 86_400_000);
  const chosen = [0, 1, 2].map((nth) => mutations[(3 * day + nth) % mutations.length]);
  for (const mutation of chosen.filter((one) => one !== undefined)) {
    expect(await catchByName(mutation)).toEqual({ kind: 'caught', by: mutation.caughtBy });
  }
  expect(await failingAnyway(chosen.flatMap((mutation) => mutation?.caughtBy ?? []))).toEqual([]);
});
