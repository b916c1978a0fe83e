import { expect, test } from 'vitest';
import { StreamEnds } from '../../../src/audit/rules/stream-ends.ts';

const leafOf = (data: object): Buffer => Buffer.from(JSON.stringify({ data }));

test('a stream ends with its last event, or with the last event of another stream that names it', () => {
  const ends = new StreamEnds();
  ends.take('0xaa', leafOf({}), 1);
  ends.take('account:1', leafOf({ quote_digest: '0xaa' }), 2);
  ends.take('account:1', leafOf({ memo: '"quote_digest"' }), 3);
  ends.take('0xbb', Buffer.from('{"quote_digest"'), 4);
  expect([1, 2, 3].map((seq) => ends.isLast('0xaa', seq))).toEqual([false, true, true]);
  expect([2, 3].map((seq) => ends.isLast('account:1', seq))).toEqual([false, true]);
  expect(ends.isLast('0xbb', 4)).toBe(true);
});
