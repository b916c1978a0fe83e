import { expect, test } from 'vitest';
import { createRotation } from '../../../src/base/values/rotation.ts';

test('one item of each key is taken before the next of the same, the first one of a key first', () => {
  const rotation = createRotation<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) rotation.add(item.charAt(0), item);
  rotation.addFirst('a', 'a0');
  rotation.remove('c', 'c1');
  rotation.remove('c', 'c1');
  expect([rotation.size, rotation.countOf('a'), rotation.countOf('none')]).toEqual([6, 4, 0]);
  const taken = Array.from({ length: 7 }, () => rotation.next());
  expect(taken).toEqual(['a0', 'b1', 'c2', 'a1', 'a2', 'a3', undefined]);
  expect([rotation.size, rotation.countOf('a')]).toEqual([0, 0]);
});
