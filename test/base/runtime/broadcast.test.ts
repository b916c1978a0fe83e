import { expect, onTestFinished, test, vi } from 'vitest';
import { createBroadcast } from '../../../src/base/runtime/broadcast.ts';

const everyMs = 20;

function counted({ failsAt }: { readonly failsAt?: number } = {}) {
  const faults: unknown[] = [];
  let reads = 0;
  let isStopping = false;
  const broadcast = createBroadcast(
    async () => {
      reads += 1;
      if (reads === failsAt) throw new Error('away');
      return reads;
    },
    { everyMs, isStopping: () => isStopping, onFault: (fault) => faults.push(fault) },
  );
  return { broadcast, faults, reads: () => reads, stop: () => (isStopping = true) };
}

async function take(values: AsyncGenerator<number, void>, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) {
    const { value, done } = await values.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

test('however many follow, one reads, and all get the same values', async () => {
  const { broadcast, reads } = counted();
  const { signal } = new AbortController();
  const followers = Array.from({ length: 50 }, () => broadcast.follow(signal));
  const taken = await Promise.all(followers.map((follower) => take(follower, 3)));
  expect(broadcast.followers).toBe(50);
  for (const values of taken) expect(values).toEqual([1, 2, 3]);
  expect(reads()).toBe(3);
  for (const follower of followers) await follower.return();
});

test('nothing is read once the last one has left', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { broadcast, reads } = counted();
  const left = new AbortController();
  const values = broadcast.follow(left.signal);
  expect(await take(values, 1)).toEqual([1]);
  left.abort();
  expect(await take(values, 1)).toEqual([]);
  expect(broadcast.followers).toBe(0);
  await vi.advanceTimersByTimeAsync(5 * everyMs);
  expect(reads()).toBe(1);
});

test('a reading that fails is reported, and the next one is used', async () => {
  const { broadcast, faults } = counted({ failsAt: 2 });
  const values = broadcast.follow(new AbortController().signal);
  expect(await take(values, 2)).toEqual([1, 3]);
  expect(faults).toEqual([new Error('away')]);
  await values.return();
});

test('followers are released when the process shuts down', async () => {
  const { broadcast, stop } = counted();
  const values = broadcast.follow(new AbortController().signal);
  expect(await take(values, 1)).toEqual([1]);
  stop();
  expect(await take(values, 1)).toEqual([]);
});
