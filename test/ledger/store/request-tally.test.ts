import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { recordRefusal } from '../../../src/jobs/use-cases/answer-refusal.ts';
import { createBudget } from '../../../src/base/runtime/budget.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { readCounters } from '../../../src/ledger/store/counters.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../support/database.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';

const enqueueFailed = {
  record: {
    kind: 'in_request',
    event: { type: 'enqueue_failed', data: { reason: 'outbox_full', service_id: 1, job_index: 0 } },
  },
} as const;

/** A lane whose queue is always full, and what a refusal needs beside it. */
async function fullLane() {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, maxQueued: 0 });
  onTestFinished(() => lane.close(0));
  const context = { lane, requestTally: createRequestTally() };
  const charge = createBudget(1).open();
  const refuse = () => recordRefusal(context, { stream: `request:${randomUUID()}`, charge }, enqueueFailed);
  return { database, ...context, refuse };
}

test('a full lane takes no event of a refusal: the refusals are summed, and the counters are exact', async () => {
  const { database, lane, requestTally, refuse } = await fullLane();
  await Promise.all(Array.from({ length: 100 }, () => refuse()));
  await requestTally.record(lane);
  await requestTally.record(lane);
  const events = await allEvents(database.db);
  expect(events).toMatchObject([{ type: 'refusals_counted', data: { counts: { enqueue_failed: 100 } } }]);
  expect((await readCounters(database.db)).counters).toMatchObject({ enqueue_failed: 100, denied: 0 });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('sums that could not be recorded are recorded before the next ones', async () => {
  const { database, requestTally, refuse } = await fullLane();
  await refuse();
  const closed = openLane({ url: database.url });
  await closed.close(0);
  await expect(requestTally.record(closed)).rejects.toThrow('closing');
  await refuse();
  const lane = openLane({ url: database.url });
  onTestFinished(() => lane.close(0));
  await requestTally.record(lane);
  expect(await allEvents(database.db)).toMatchObject([
    { data: { counts: { enqueue_failed: 1 } } },
    { data: { counts: { enqueue_failed: 1 } } },
  ]);
});
