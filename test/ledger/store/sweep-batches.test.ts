import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { appendStatement, encodeCommand } from '../../../src/ledger/store/append-batch.ts';
import { readCounters } from '../../../src/ledger/store/counters.ts';
import { collectFollowUps } from '../../../src/payments/store/follow-ups.ts';
import { createDatabase } from '../../support/database.ts';
import { newStream, refused } from '../../support/events.ts';
import { expectSoundLedger } from '../../support/invariants.ts';

test('the counts of batches are added up after them once it is 300 rows, and each sender’s last answer is kept', async () => {
  const { pool, asOwner, db } = await createDatabase();
  const flusher = randomUUID();
  const batch = (batchNo: number) => {
    const command = encodeCommand({ stream: newStream(), events: [refused()] });
    return appendStatement(1, flusher, batchNo, batchNo - 1, [command]);
  };
  const last = batch(300);
  for (let batchNo = 1; batchNo < 300; batchNo++) await pool.query(batch(batchNo));
  // one row too few
  await collectFollowUps(pool, 1_000);
  const answered = await pool.query(last);
  const counters = await readCounters(db);
  const kept = async () => {
    const { rows } = await pool.query(
      `select (select array_agg(count::int) from tollbook.lane_counter) as counts,
         (select array_agg(batch_no::int order by batch_no) from tollbook.lane_batch) as batches`,
    );
    return rows[0];
  };
  expect(await kept()).toEqual({
    counts: Array(300).fill(1),
    batches: Array.from({ length: 300 }, (_, n) => n + 1),
  });

  await collectFollowUps(pool, 1_000);
  expect(await kept()).toEqual({ counts: [300], batches: [300] });
  expect(await readCounters(db)).toEqual(counters);
  expect((await pool.query(last)).rows).toEqual(answered.rows);
  expect(await asOwner((owner) => expectSoundLedger(db, owner))).toHaveLength(300);
});
