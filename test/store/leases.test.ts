import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { leaseCalls, putBody, readWaitingCalls } from '../../src/store/calls.ts';
import { readDeliveries, readHolds, readOpenSettlements } from '../../src/store/figures.ts';
import type { Lane } from '../../src/store/lane.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { paidWith, newStream, refused } from '../support/events.ts';

/** A call that runners may take. */
async function release(
  { pool }: TestDatabase,
  lane: Lane,
  { serviceId, bytes }: { readonly serviceId: number; readonly bytes: number },
): Promise<number> {
  const bodyId = randomUUID();
  await putBody(pool, bodyId, undefined, Buffer.alloc(bytes));
  const add = { op: 'add', serviceId, jobIndex: 0, bodyId } as const;
  const pay = { ...paidWith, payment: 'p' };
  const added = await lane.append({ stream: newStream(), events: [refused()], call: { ...add, ...pay } });
  const callId = added.outcome === 'ok' ? (added.call_id ?? 0) : 0;
  await lane.append({ stream: newStream(), events: [refused()], call: { op: 'release', callId } });
  return callId;
}

test('a call waits while it is due and no valid lease holds it: one whose lease has expired too, by service', async () => {
  const database = await createDatabase();
  const lane = laneOn(database);
  const [first, , other] = [
    await release(database, lane, { serviceId: 1, bytes: 1 }),
    await release(database, lane, { serviceId: 1, bytes: 1 }),
    await release(database, lane, { serviceId: 7, bytes: 1 }),
  ];
  const waiting = async () =>
    (await readWaitingCalls(database.pool)).map((each) => ({ ...each, oldestMs: 0 }));
  const ofOther = { oldestMs: 0, serviceId: 7, calls: 1, oldestCallId: other, isLeased: false };
  expect(await waiting()).toMatchObject([
    { oldestMs: 0, serviceId: 1, calls: 2, oldestCallId: first, isLeased: false },
    ofOther,
  ]);
  expect(await leaseCalls(database.pool, [1], 1, 60)).toHaveLength(1);
  expect(await waiting()).toMatchObject([{ serviceId: 1, calls: 1, isLeased: true }, ofOther]);
  await database.moveClock(100);
  expect(await waiting()).toMatchObject([{ serviceId: 1, calls: 2, isLeased: false }, ofOther]);
  const [oldest] = await readWaitingCalls(database.pool);
  expect(oldest?.oldestMs).toBeGreaterThan(90_000);
});

test('the figures have live leases and calls whose delivery failed by service, and the age of the oldest open settlement', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const lane = laneOn(database);
  const [first] = [
    await release(database, lane, { serviceId: 1, bytes: 1 }),
    await release(database, lane, { serviceId: 7, bytes: 1 }),
  ];
  const idle = { serviceId: 7, leased: 0, oldestFailingMs: 0 };
  expect(await readDeliveries(pool)).toEqual([{ ...idle, serviceId: 1 }, idle]);
  const [call] = await leaseCalls(pool, [1], 1, 60);
  expect(await readDeliveries(pool)).toEqual([{ serviceId: 1, leased: 1, oldestFailingMs: 0 }, idle]);
  const retry = { op: 'retry', callId: first, leaseId: call?.leaseId ?? '', delayMs: 3_600_000 } as const;
  await lane.append({ stream: newStream(), events: [refused()], call: retry });
  await database.moveClock(100);
  const [failing, other] = await readDeliveries(pool);
  expect([failing?.leased, other]).toEqual([0, idle]);
  expect(failing?.oldestFailingMs).toBeGreaterThan(99_000);
  // the pause after a failure is no waiting
  expect(await readWaitingCalls(pool)).toMatchObject([{ serviceId: 7 }]);

  expect(await readOpenSettlements(pool)).toEqual({ count: 0, oldestMs: 0 });
  const add = { op: 'add', serviceId: 1, jobIndex: 0, bodyId: randomUUID() } as const;
  const pay = { ...paidWith, payment: 'q' };
  await putBody(pool, add.bodyId, undefined, Buffer.alloc(1));
  await lane.append({ stream: newStream(), events: [refused()], call: { ...add, ...pay } });
  await database.moveClock(150);
  const open = await readOpenSettlements(pool);
  expect(open.count).toBe(1);
  expect(open.oldestMs).toBeGreaterThan(49_000);
  expect(await readHolds(pool)).toEqual({ count: 0, oldestMs: 0 });
});

test('a lease of many calls stops once their bodies have 16 MiB, so that paid bodies do not exhaust memory', async () => {
  const database = await createDatabase();
  const lane = laneOn(database);
  for (let count = 0; count < 3; count++) await release(database, lane, { serviceId: 1, bytes: 9 * 2 ** 20 });
  const lease = async () => (await leaseCalls(database.pool, [1], 100, 60)).length;
  expect([await lease(), await lease(), await lease()]).toEqual([2, 1, 0]);
});
