import { expect, test } from 'vitest';
import { createNextRead } from '../../../src/base/runtime/next-read.ts';

test('nobody gets a read that began before they asked, and those who ask while one runs share the next', async () => {
  const begun: PromiseWithResolvers<number>[] = [];
  const read = createNextRead(() => {
    const one = Promise.withResolvers<number>();
    begun.push(one);
    return one.promise;
  });
  const first = read();
  const later = [read(), read(), read()];
  expect(begun).toHaveLength(1);
  begun[0]?.resolve(1);
  expect(await first).toBe(1);
  await Promise.resolve();
  expect(begun).toHaveLength(2);
  begun[1]?.resolve(2);
  expect(await Promise.all(later)).toEqual([2, 2, 2]);
  const last = read();
  begun[2]?.resolve(3);
  expect(await last).toBe(3);
});

test('a read that fails fails for those who asked before it began, and not for the next', async () => {
  let count = 0;
  const read = createNextRead(async () => {
    count++;
    await Promise.resolve();
    if (count === 1) throw new Error('no answer');
    return count;
  });
  const [first, second] = [read(), read()];
  await expect(first).rejects.toThrow('no answer');
  expect(await second).toBe(2);
});
