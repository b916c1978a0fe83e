import { expect, test } from 'vitest';
import { makeRuns } from './chaos.ts';

test('money and calls agree after kills, cuts and lies, with one gateway and with two on one database', async () => {
  const lines: string[] = [];
  const reports = await makeRuns({
    runs: 2,
    seed: 'npm test',
    scenarios: 10,
    loadMs: 1_000,
    say: (line) => lines.push(line),
  });
  const isSound = reports.every(({ violations }) => violations.length === 0);
  expect(isSound ? [] : lines).toEqual([]);
  // a harness that does nothing would be silent too
  expect(reports.map(({ payments }) => payments.landed > 0)).toEqual([true, true]);
});
