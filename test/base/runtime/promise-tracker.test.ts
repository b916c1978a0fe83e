import { expect, test } from 'vitest';
import { inBackground } from '../../../src/base/runtime/background.ts';
import { createPromiseTracker } from '../../../src/base/runtime/promise-tracker.ts';

test('a promise is tracked until it settles, resolved or rejected', async () => {
  const tracker = createPromiseTracker();
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<never>();
  expect(tracker.add(first.promise)).toBe(first.promise);
  const failing = tracker.add(second.promise);
  expect(tracker.size).toBe(2);
  first.resolve('done');
  await first.promise;
  expect(tracker.size).toBe(1);
  second.reject(new Error('failed'));
  await expect(failing).rejects.toThrow('failed');
  await tracker.drained();
  expect(tracker.size).toBe(0);
});

test('draining waits for promises that were added meanwhile, settling does not', async () => {
  const tracker = createPromiseTracker();
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  void tracker.add(first.promise);
  let isDrained = false;
  const drained = tracker.drained().then(() => (isDrained = true));
  const settled = tracker.settled();
  void tracker.add(second.promise);
  first.resolve();
  await settled;
  expect(isDrained).toBe(false);
  second.resolve();
  await drained;
  expect(isDrained).toBe(true);
});

test('a failure in the background is logged with its fields and stops nothing else', async () => {
  const running = createPromiseTracker();
  const logged: unknown[] = [];
  const log = { error: (...line: unknown[]) => void logged.push(line) };
  const err = new Error('disk full');
  inBackground({ running, log }, Promise.reject(err), 'a row could not be stored', { chat_id: 'c1' });
  expect(running.size).toBe(1);
  await running.drained();
  expect(logged).toEqual([[{ err, chat_id: 'c1' }, 'a row could not be stored']]);
});
