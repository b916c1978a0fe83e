import { expect, test } from 'vitest';
import { pause } from '../../../src/base/runtime/pause.ts';

test('a pause ends after its time', async () => {
  expect(await pause(1)).toBe(true);
});

test('a pause ends early where its signal aborts, also if it aborted before', async () => {
  const controller = new AbortController();
  const pausing = pause(60_000, controller.signal);
  controller.abort();
  expect(await pausing).toBe(false);
  expect(await pause(60_000, controller.signal)).toBe(false);
});
