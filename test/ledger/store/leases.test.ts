import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { extendLease, leaseCalls, putBody, readWaitingCalls } from '../../../src/calls/store/calls.ts';
import { openPool } from '../../../src/ledger/store/database.ts';
import { readDeliveries, readHolds, readOpenSettlements } from '../../../src/ledger/store/backlogs.ts';
import { heldName, holdLeases } from '../../../src/calls/store/held-leases.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { takeOldCalls } from '../../../src/calls/store/old-calls.ts';
import { laneOn, databaseWithLane } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { paidWith, newStream, refused } from '../../support/events.ts';

/** A call that runners may take. */
async function release(
  { pool }: TestDatabase,
  lane: Lane,
  {
    serviceId,
    jobIndex = 0,
    bytes,
  }: { readonly serviceId: number; readonly jobIndex?: number; readonly bytes: number },
): Promise<number> {
  const bodyId = randomUUID();
  await putBody(pool, bodyId, undefined, Buffer.alloc(bytes));
  const add = { op: 'add', serviceId, jobIndex, bodyId } as const;
  const pay = { ...paidWith, payment: 'p' };
  const added = await lane.append({ stream: newStream(), events: [refused()], call: { ...add, ...pay } });
  const callId = added.outcome === 'ok' ? (added.call_id ?? 0) : 0;
  await lane.append({ stream: newStream(), events: [refused()], call: { op: 'release', callId } });
  return callId;
}

test('a call waits while it is due and no valid lease holds it: one whose lease has expired too, by service', async () => {
  const { database, lane } = await databaseWithLane();
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

test.each(['written', 'decided'])(
  'a call is released and leased in one append, whose batch is %s: no other lease gets it, and it ends under that lease',
  async (way) => {
    const { database, lane } = await databaseWithLane();
    const stream = newStream();
    const pay = { ...paidWith, payment: 'p' };
    const add = { op: 'add', serviceId: 1, jobIndex: 0, bodyId: randomUUID() } as const;
    const added = await lane.append({ stream, events: [refused()], call: { ...add, ...pay } });
    const callId = added.outcome === 'ok' ? (added.call_id ?? 0) : 0;
    const leaseId = randomUUID();
    // what frees a claim is decided
    const freed = way === 'decided' ? [{ ...claim, key: stream }] : [];
    const lease = () =>
      lane.append({
        stream,
        events: [refused()],
        freed,
        call: { op: 'lease', callId, leaseId, delayMs: 60_000 },
      });
    expect(await lease()).toMatchObject({ outcome: 'ok' });
    expect(lane.state).toMatchObject({ openCalls: 1, unsettledCalls: 0 });
    expect(await lease()).toEqual({ outcome: 'lease_lost' });
    expect(await leaseCalls(database.pool, [1], 1, 60)).toEqual([]);
    await database.moveClock(61);
    const [next] = await leaseCalls(database.pool, [1], 1, 60);
    expect(next).toMatchObject({ callId, attempt: 2, failures: 1 });
    const complete = (id: string) =>
      lane.append({ stream, events: [refused()], call: { op: 'complete', callId, leaseId: id } });
    expect(await complete(leaseId)).toEqual({ outcome: 'lease_lost' });
    expect(await complete(next?.leaseId ?? '')).toMatchObject({ outcome: 'ok' });
    expect(lane.state).toMatchObject({ openCalls: 0, unsettledCalls: 0 });
  },
);

const claim = { kind: 'payment', owner: 'o', scope: 's', binding: 'b' } as const;

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
  // the pause after a failure is not waiting
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
  const { database, lane } = await databaseWithLane();
  for (let count = 0; count < 3; count++) await release(database, lane, { serviceId: 1, bytes: 9 * 2 ** 20 });
  const lease = async () => (await leaseCalls(database.pool, [1], 100, 60)).length;
  expect([await lease(), await lease(), await lease()]).toEqual([2, 1, 0]);
});

const many = (count: number) => Array.from({ length: count }, (_, index) => index);

test('services share: each place goes to the one with the fewest calls with runners, whatever waits and however old it is', async () => {
  const { database, lane } = await databaseWithLane();
  for (const _ of many(12)) await release(database, lane, { serviceId: 1, bytes: 1 });
  await database.moveClock(600);
  for (const _ of many(4)) await release(database, lane, { serviceId: 7, bytes: 1 });
  const next = async (max: number) =>
    (await leaseCalls(database.pool, [1, 7], max, 60)).map(({ serviceId }) => serviceId);
  // the first service has slow calls with runners already
  expect(await leaseCalls(database.pool, [1], 3, 3_600)).toHaveLength(3);
  expect([await next(1), await next(1)]).toEqual([[7], [7]]);
  expect(await next(3)).toEqual([1, 7, 7]);
  // what is left belongs to whoever has calls
  expect(await next(100)).toEqual(many(8).map(() => 1));
});

test('a job of a higher priority goes first within its service, and one that waits after it gets its share of the places', async () => {
  const { database, lane } = await databaseWithLane();
  for (const _ of many(60)) await release(database, lane, { serviceId: 1, jobIndex: 0, bytes: 1 });
  for (const _ of many(60)) await release(database, lane, { serviceId: 1, jobIndex: 1, bytes: 1 });
  const jobs = [{ serviceId: 1, jobIndex: 1, priority: 5, maxConcurrent: undefined }];
  const pool = openPool({ url: database.url, maxConnections: 1 });
  onTestFinished(() => pool.end());
  await pool.query('select setseed(0.5)');
  const taken: number[] = [];
  while (taken.length < 60)
    for (const { jobIndex } of await leaseCalls(pool, [1], 1, 3_600, jobs)) taken.push(jobIndex);
  const urgent = taken.filter((jobIndex) => jobIndex === 1).length;
  // nine in ten
  expect(urgent).toBeGreaterThan(42);
  expect(urgent).toBeLessThan(60);
  // a lower priority than that of other jobs
  const last = [{ serviceId: 1, jobIndex: 0, priority: -1, maxConcurrent: undefined }];
  const rest = await leaseCalls(database.pool, [1], 120, 3_600, last);
  expect(rest).toHaveLength(60);
});

test('a job with a limit has at most so many calls with runners simultaneously, however many processes lease, and delays no other job', async () => {
  const { database, lane } = await databaseWithLane();
  for (const _ of many(20)) await release(database, lane, { serviceId: 1, jobIndex: 0, bytes: 1 });
  for (const _ of many(6)) await release(database, lane, { serviceId: 1, jobIndex: 1, bytes: 1 });
  const jobs = [{ serviceId: 1, jobIndex: 0, priority: 9, maxConcurrent: 3 }];
  const pools = many(8).map(() => openPool({ url: database.url, maxConnections: 2 }));
  const leaseAtOnce = async () => {
    const rounds = many(4).flatMap(() => pools.map((pool) => leaseCalls(pool, [1], 5, 60, jobs)));
    return (await Promise.all(rounds)).flat();
  };
  try {
    for (const _ of many(3)) {
      const leased = await leaseAtOnce();
      expect(leased.filter(({ jobIndex }) => jobIndex === 0)).toHaveLength(3);
      expect(await leaseAtOnce()).toEqual([]);
      for (const { callId, leaseId, jobIndex } of leased) {
        const call = { op: 'complete', callId, leaseId } as const;
        if (jobIndex === 0) await lane.append({ stream: newStream(), events: [refused()], call });
      }
    }
    const others = await database.db
      .selectFrom('tollbook.call')
      .select('status')
      .where('job_index', '=', 1)
      .execute();
    expect(others.map(({ status }) => status)).toEqual(many(6).map(() => 'leased'));
    // a lease that has ended frees its place
    expect(await leaseCalls(database.pool, [1], 5, 60, jobs)).toHaveLength(3);
    await database.moveClock(61);
    expect((await leaseAtOnce()).filter(({ jobIndex }) => jobIndex === 0)).toHaveLength(3);
  } finally {
    await Promise.all(pools.map((pool) => pool.end()));
  }
});

test('a call that a busy runner did not take counts as not delivered, although it lost no attempt', async () => {
  const { database, lane } = await databaseWithLane();
  const callId = await release(database, lane, { serviceId: 1, bytes: 1 });
  const [call] = await leaseCalls(database.pool, [1], 1, 60);
  const returned = { op: 'return_lease', callId, leaseId: call?.leaseId ?? '', delayMs: 30_000 } as const;
  const command = { ...returned, reason: 'status_503' };
  await lane.append({ stream: newStream(), events: [refused()], call: command });
  await database.moveClock(100);
  const [deliveries] = await readDeliveries(database.pool);
  expect(deliveries?.oldestFailingMs).toBeGreaterThan(99_000);
});

test('no lease lasts beyond the age of its call, and none of a call that is too old is given, taken or extended', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const callId = await release(database, laneOn(database), { serviceId: 1, bytes: 1 });
  const startMs = Date.now();
  const [call] = await leaseCalls(pool, [1], 1, 3_600, [], 1_000);
  const leaseId = call?.leaseId ?? '';
  const secsUntil = (end: Date | undefined): number =>
    Math.round(((end?.getTime() ?? 0) - startMs) / 10_000) * 10;
  expect(secsUntil(call?.leaseUntil)).toBe(1_000);
  const own = randomUUID();
  const hold = (lease: string, maxAgeSecs: number) =>
    holdLeases(pool, [{ callId, leaseId: lease, newLeaseId: own }], [1], 3_600, maxAgeSecs);
  const held = [...(await hold(leaseId, 1_000))];
  expect(held).toEqual([[heldName(callId, own), expect.any(Number)]]);
  expect(Math.round((held[0]?.[1] ?? 0) / 10_000)).toBe(100);
  expect(secsUntil(await extendLease(pool, { callId, leaseId: own }, 3_600, 2_000))).toBe(2_000);
  await database.moveClock(1_100);
  expect(await extendLease(pool, { callId, leaseId: own }, 3_600, 1_000)).toBe(undefined);
  expect([...(await hold(own, 1_000))]).toEqual([]);
  await database.moveClock(2_100);
  expect(await leaseCalls(pool, [1], 1, 60, [], 1_000)).toEqual([]);
  // by one process at a time
  const old = { except: [], max: 1, maxAgeSecs: 1_000, leaseSecs: 60 };
  expect(await takeOldCalls(pool, { ...old, except: [{ serviceId: 1, jobIndex: 0 }] })).toEqual([]);
  expect(await takeOldCalls(pool, old)).toMatchObject([{ callId, attempt: 1 }]);
  expect(await takeOldCalls(pool, old)).toEqual([]);
  await database.moveClock(2_200);
  expect(await takeOldCalls(pool, old)).toMatchObject([{ callId, attempt: 1 }]);
});
