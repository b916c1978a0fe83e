import { expect, test } from 'vitest';
import { createSpendQueue } from '../../../../src/chat/use-cases/spend/spend-queue.ts';

test('one spend of an account lands at a time, the lowest waiting nonce next', async () => {
  const queue = createSpendQueue(8);
  const order: bigint[] = [];
  const enter = async (nonce: bigint): Promise<void> => {
    const leave = await queue.enter('one', nonce);
    order.push(nonce);
    await Promise.resolve();
    leave?.();
    leave?.();
  };
  await Promise.all([7n, 3n, 9n, 1n, 5n].map(enter));
  expect(order).toEqual([7n, 1n, 3n, 5n, 9n]);
  expect(await queue.enter('one', 0n)).toBeTypeOf('function');
});

test('accounts do not wait for each other, and too many waiting spends of one account are refused', async () => {
  const queue = createSpendQueue(1);
  expect(await queue.enter('one', 0n)).toBeTypeOf('function');
  expect(await queue.enter('other', 0n)).toBeTypeOf('function');
  const waiting = queue.enter('one', 1n);
  expect(await queue.enter('one', 2n)).toBeUndefined();
  expect(await Promise.race([waiting, Promise.resolve('waits')])).toBe('waits');
});
