import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { recordRefusal } from '../../../src/jobs/use-cases/answer-refusal.ts';
import { createBudget } from '../../../src/base/runtime/budget.ts';
import { createEventAllowance } from '../../../src/ledger/store/event-allowance.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { readCounters } from '../../../src/ledger/store/counters.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../support/database.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';

type RefusalEvent = Extract<Parameters<typeof recordRefusal>[2]['record'], { kind: 'in_request' }>['event'];

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
  const context = { lane, requestTally: createRequestTally(), rejectionEvents: { take: () => true } };
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

test.each([
  ['an unknown job', 'request_refused', { code: 'job_not_found' }],
  ['a denied caller', 'auth_denied', { code: 'caller_not_permitted', service_id: 1, job_index: 0 }],
  ['a full outbox', 'enqueue_failed', { reason: 'outbox_full', service_id: 1, job_index: 0 }],
] as const)(
  'a thousand refusals for %s leave events of their own up to an allowance, and beyond it one sum',
  async (_, type, data) => {
    const database = await createDatabase();
    const lane = openLane({ url: database.url });
    onTestFinished(() => lane.close(0));
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const rejectionEvents = await createEventAllowance({ ...database, log }, 'rejected_payment', 1);
    const context = { lane, requestTally: createRequestTally(), rejectionEvents };
    const event = { type, data } as RefusalEvent;
    for (let sent = 0; sent < 1_000; sent++) {
      // each from another address
      const charge = createBudget(1).open();
      const request = { stream: `request:${randomUUID()}`, charge };
      await recordRefusal(context, request, { record: { kind: 'in_request', event } });
    }
    await context.requestTally.record(lane);
    const events = await allEvents(database.db);
    const own = events.filter((recorded) => recorded.type === type).length;
    expect(own).toBeGreaterThanOrEqual(50);
    // a burst of 200, and one for each second that this took
    expect(own).toBeLessThan(400);
    expect(events).toHaveLength(own + 1);
    expect(events.at(-1)).toMatchObject({ data: { counts: { [type]: 1_000 - own } } });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  },
);

test('a permitted caller who finds no capacity is recorded as passed and refused, whatever strangers have used up', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url });
  onTestFinished(() => lane.close(0));
  const context = { lane, requestTally: createRequestTally(), rejectionEvents: { take: () => false } };
  const passed = {
    type: 'auth_passed',
    data: { caller: `0x${'1'.repeat(40)}`, mode: 'payer_is_caller' },
  } as const;
  const request = { stream: `request:${randomUUID()}`, charge: createBudget(1).open() };
  await recordRefusal(context, request, { record: { ...enqueueFailed.record, passed } });
  expect((await allEvents(database.db)).map(({ type }) => type)).toEqual(['auth_passed', 'enqueue_failed']);
});
