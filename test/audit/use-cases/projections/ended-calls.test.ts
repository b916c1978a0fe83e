import { expect, test } from 'vitest';
import { projectNext } from '../../../../src/audit/use-cases/projections/project.ts';
import { checkReadModels } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendAll } from '../../../support/log.ts';
import { paidJob, type StreamEvent } from '../../../support/synthetic-ledger.ts';

/** A paid job whose call becomes a dead letter. */
function deadLetter(n: number): StreamEvent[] {
  const job = paidJob(n).slice(0, -1);
  const dead = { call_id: n + 1, attempt: 1, reason: 'status_500' };
  return [...job, { stream: job[0]!.stream, event: { type: 'dead_lettered', data: dead } }];
}

function givenUp(n: number): StreamEvent {
  const data = { call_id: n + 1, why: 'no such input any more', operator: 'ada' };
  return { stream: deadLetter(n)[0]!.stream, event: { type: 'operator_discarded', data } };
}

test('a dead letter that is given up ended when it became one, whether one step of the read models has both events or two steps have them', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const project = async () => {
    while ((await projectNext(pool, 500)) > 0);
  };
  await appendAll(database, deadLetter(1));
  await project();
  await appendAll(database, [givenUp(1), ...deadLetter(2), givenUp(2)]);
  await project();
  expect(await checkReadModels(pool)).toEqual([]);
  const { rows } = await pool.query<{ is_its_end: boolean }>(
    `select call.ended_at = dead.at and payment.refund_due_since = dead.at as is_its_end
      from tollbook.paid_call call join tollbook.payment using (generation, seq)
      join tollbook.event dead on dead.type = 'dead_lettered' and (dead.data::json->>'call_id')::bigint = call.call_id`,
  );
  expect(rows).toEqual([{ is_its_end: true }, { is_its_end: true }]);
});
