import { expect, inject, test } from 'vitest';
import { closeWorld, makeYear, openWorld } from './year.ts';

test('two generated months close month by month and as a whole: books, chain, report and model agree to the atom', async () => {
  const lines: string[] = [];
  const setup = { serverUrl: inject('serverUrl'), say: (line: string) => void lines.push(line) };
  const world = await openWorld({ payments: 200, months: 2, seed: 'npm test' }, setup);
  try {
    await makeYear(world, setup);
    // a program that does nothing would agree with itself too
    expect(Object.fromEntries(world.counts)).toMatchObject({
      'dead letters': 4,
      'payments reorged': 7,
      'payments lost with the database, and found': 6,
    });
    expect(lines).toHaveLength(3);
  } finally {
    await closeWorld(world);
  }
});
