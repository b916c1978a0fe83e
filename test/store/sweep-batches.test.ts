import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { appendStatement, encodeCommand } from '../../src/store/append-batch.ts';
import { readCounters } from '../../src/store/counters.ts';
import { collectFollowUps } from '../../src/store/follow-ups.ts';
import { createDatabase } from '../support/database.ts';
import { newStream, refused } from '../support/events.ts';
import { expectSoundLedger } from '../support/invariants.ts';

test('what batches have counted is added up behind them, and each sender’s last answer is kept', async () => {
  const { pool, asOwner, db } = await createDatabase();
  const flusher = randomUUID();
  const batch = (batchNo: number) => {
    const command = encodeCommand({ stream: newStream(), events: [refused()] });
    return appendStatement(1, flusher, batchNo, batchNo - 1, [command]);
  };
  const last = batch(3);
  for (const statement of [batch(1), batch(2)]) await pool.query(statement);
  const answered = await pool.query(last);
  const kept = async () => {
    const { rows } = await pool.query<{ counts: number[]; batches: number[] }>(
      `select array(select count::int from tollbook.lane_counter) as counts,
         array(select batch_no::int from tollbook.lane_batch order by batch_no) as batches`,
    );
    return rows[0];
  };
  expect(await kept()).toEqual({ counts: [1, 1, 1], batches: [1, 2, 3] });
  const counters = await readCounters(db);
  expect(await collectFollowUps(pool, 100)).toBe(3);
  expect(await kept()).toEqual({ counts: [3], batches: [3] });
  expect(await readCounters(db)).toEqual(counters);
  expect((await pool.query(last)).rows).toEqual(answered.rows);
  expect(await asOwner((owner) => expectSoundLedger(db, owner))).toHaveLength(3);
});
