import { expect, inject, test } from 'vitest';
import { findPlants } from './plants/check.ts';
import { makeGround } from './plants/ground.ts';
import { plants } from './plants/plants.ts';
import { closeWorld, openWorld } from './year.ts';

test('each break that is planted alone into a sound month is found, with its class and its subject, and nothing besides', async () => {
  const lines: string[] = [];
  const setup = { serverUrl: inject('serverUrl'), say: (line: string) => void lines.push(line) };
  const world = await openWorld({ payments: 60, months: 1, seed: 'npm test' }, setup);
  try {
    const { period, sales } = await makeGround(world, 60);
    expect(await findPlants(world, period, sales, setup.say)).toEqual([]);
    expect(lines).toHaveLength(plants.length);
  } finally {
    await closeWorld(world);
  }
});
