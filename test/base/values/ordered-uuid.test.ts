import { expect, test } from 'vitest';
import { z } from 'zod';
import { orderedUuid } from '../../../src/base/values/ordered-uuid.ts';

test('ordered UUIDs are UUIDs of version 7, differ, and sort by their milliseconds', () => {
  const times = [0, 1, 1_795_348_800_123, 1_795_348_800_124, 2 ** 48 - 1];
  const ids = times.map((ms) => orderedUuid(ms));
  expect(ids.map((id) => z.uuidv7().safeParse(id).success)).toEqual(times.map(() => true));
  expect(ids.toSorted()).toEqual(ids);
  expect(orderedUuid(1)).not.toBe(orderedUuid(1));
});
