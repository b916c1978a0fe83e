import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { leaseCalls, type LeasedCall, putBody } from '../../../src/calls/store/calls.ts';
import { openPool } from '../../../src/ledger/store/database.ts';
import { takeOldCalls } from '../../../src/calls/store/old-calls.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import type { CallChange, CallOrder } from '../../../src/ledger/store/lane-command.ts';
import { databaseWithLane } from '../../support/credit.ts';
import { type TestDatabase } from '../../support/database.ts';
import { newStream, paidWith, refused } from '../../support/events.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const strict = (key: string): CallOrder => ({
  key: sha256(key).slice(2),
  limit: 1,
  keepsPlace: false,
  maxFailures: undefined,
});

async function add({ pool }: TestDatabase, lane: Lane, order: CallOrder | undefined): Promise<number> {
  const bodyId = randomUUID();
  await putBody(pool, bodyId, undefined, Buffer.from('body'));
  const call = { op: 'add', serviceId: 1, jobIndex: 0, bodyId, payment: 'p', order, ...paidWith } as const;
  const added = await lane.append({ stream: newStream(), events: [refused()], call });
  if (added.outcome !== 'ok' || added.call_id === null) throw new Error(`not added: ${added.outcome}`);
  return added.call_id;
}

async function change(lane: Lane, call: CallChange): Promise<string> {
  return (await lane.append({ stream: newStream(), events: [refused()], call }, { urgent: true })).outcome;
}

async function enqueue(database: TestDatabase, lane: Lane, order?: CallOrder): Promise<number> {
  const callId = await add(database, lane, order);
  expect(await change(lane, { op: 'release', callId })).toBe('ok');
  return callId;
}

const end = (
  lane: Lane,
  { callId, leaseId }: LeasedCall,
  op: 'complete' | 'retry' | 'dead_letter',
): Promise<string> =>
  change(lane, op === 'retry' ? { op, callId, leaseId, delayMs: 0 } : { op, callId, leaseId });

async function setUp() {
  const { database, lane } = await databaseWithLane();
  const lease = (max = 100) => leaseCalls(database.pool, [1], max, 60);
  return { database, lane, lease, ids: async () => (await lease()).map(({ callId }) => callId) };
}

/** As a runner that does the work of the only call that it gets. */
function only(calls: readonly LeasedCall[]): LeasedCall {
  const [call, ...more] = calls;
  if (!call || more.length > 0) throw new Error(`${calls.length} calls`);
  return call;
}

test('calls of one key are delivered one after another in the order in which they were enqueued, and delay no other call', async () => {
  const { database, lane, lease, ids } = await setUp();
  // added in another order than they are enqueued
  const [second, first] = [await add(database, lane, strict('a')), await add(database, lane, strict('a'))];
  await change(lane, { op: 'release', callId: first });
  await change(lane, { op: 'release', callId: second });
  const third = await enqueue(database, lane, strict('a'));
  const others = [await enqueue(database, lane, strict('b')), await enqueue(database, lane)];
  const leased = await lease();
  expect(leased.map(({ callId }) => callId)).toEqual([first, ...others]);
  expect(await ids()).toEqual([]);
  const head = only(leased.filter(({ callId }) => callId === first));
  expect(await end(lane, head, 'retry')).toBe('ok');
  // through all its attempts, an expired lease included
  expect(await lease()).toMatchObject([{ callId: first, attempt: 2 }]);
  await database.moveClock(61);
  const again = (await lease()).filter(({ callId }) => callId === first);
  expect(again).toMatchObject([{ attempt: 3 }]);
  await end(lane, only(again), 'complete');
  for (const callId of [second, third]) {
    const next = only(await lease());
    expect(next.callId).toBe(callId);
    await end(lane, next, 'complete');
  }
  expect(await ids()).toEqual([]);
});

test('a dead letter releases the others of its key, or keeps them until it is requeued or given up, as its policy says', async () => {
  const { database, lane, lease, ids } = await setUp();
  const [poison, next] = [
    await enqueue(database, lane, strict('skip')),
    await enqueue(database, lane, strict('skip')),
  ];
  await end(lane, only(await lease()), 'dead_letter');
  const leased = only(await lease());
  expect(leased.callId).toBe(next);
  // requeued, it waits for its turn, which is the next one
  await change(lane, { op: 'requeue', callId: poison });
  const last = await enqueue(database, lane, strict('skip'));
  expect(await ids()).toEqual([]);
  await end(lane, leased, 'complete');
  await end(lane, only(await lease()), 'complete');
  expect(await ids()).toEqual([last]);

  const keeping = { ...strict('block'), keepsPlace: true };
  const kept = [
    await enqueue(database, lane, keeping),
    await enqueue(database, lane, keeping),
    await enqueue(database, lane, keeping),
  ];
  await end(lane, only(await lease()), 'dead_letter');
  expect(await ids()).toEqual([]);
  await change(lane, { op: 'requeue', callId: kept[0] ?? 0 });
  const requeued = only(await lease());
  expect(requeued.callId).toBe(kept[0]);
  await end(lane, requeued, 'dead_letter');
  expect(await ids()).toEqual([]);
  await change(lane, { op: 'discard', callId: kept[0] ?? 0 });
  expect(await ids()).toEqual([kept[1]]);
});

test('a call that failed as often as its policy says no longer keeps the others waiting, and is tried on its own', async () => {
  const { database, lane, lease, ids } = await setUp();
  const order = { ...strict('a'), maxFailures: 2 };
  const [poison, next] = [await enqueue(database, lane, order), await enqueue(database, lane, order)];
  await end(lane, only(await lease()), 'retry');
  const second = only(await lease());
  expect(second).toMatchObject({ callId: poison, failures: 1 });
  await end(lane, second, 'retry');
  expect(await ids()).toEqual([poison, next]);
});

test('a call whose leases end without an outcome as often no longer keeps the others waiting once it is handed out again', async () => {
  const { database, lane, lease, ids } = await setUp();
  const order = { ...strict('a'), maxFailures: 2 };
  const [poison, next] = [await enqueue(database, lane, order), await enqueue(database, lane, order)];
  const check = async ({ callId, leaseId }: LeasedCall) =>
    (await lane.append({ stream: newStream(), events: [], call: { op: 'check', callId, leaseId } })).outcome;
  for (const failures of [0, 1]) {
    const call = only(await lease());
    expect(call).toMatchObject({ callId: poison, failures });
    expect(await check(call)).toBe('ok');
    expect(await ids()).toEqual([]);
    await database.moveClock(61 * (failures + 1));
  }
  const third = only(await lease());
  expect(third).toMatchObject({ callId: poison, failures: 2 });
  expect(await check(third)).toBe('ok');
  const follower = only(await lease());
  expect(follower.callId).toBe(next);
  // both are done, in any order
  expect(await end(lane, third, 'complete')).toBe('ok');
  expect(await end(lane, follower, 'complete')).toBe('ok');
});

test('a key with several places has as many calls with runners, in order of their enqueueing', async () => {
  const { database, lane, lease, ids } = await setUp();
  const calls: number[] = [];
  for (let count = 0; count < 7; count++)
    calls.push(await enqueue(database, lane, { ...strict('a'), limit: 3 }));
  const leased = await lease();
  expect(leased.map(({ callId }) => callId)).toEqual(calls.slice(0, 3));
  for (const call of leased.slice(1)) await end(lane, call, 'complete');
  expect(await ids()).toEqual(calls.slice(3, 5));
});

test('a call whose payment is taken back keeps its turn while that is unknown, and releases the others once it failed', async () => {
  const { database, lane, ids } = await setUp();
  const [first, second] = [
    await enqueue(database, lane, strict('a')),
    await enqueue(database, lane, strict('a')),
  ];
  await change(lane, { op: 'suspend', callId: first });
  expect(await ids()).toEqual([]);
  await change(lane, { op: 'release', callId: first });
  await change(lane, { op: 'suspend', callId: first });
  await change(lane, { op: 'watch', callId: first });
  expect(await ids()).toEqual([second]);
  // paid after all: it is enqueued anew
  await change(lane, { op: 'release', callId: first });
  expect(await ids()).toEqual([]);
});

test.each([11, 12, 13])(
  'whatever runners of several processes do, they never have two calls of a key simultaneously, and each key keeps its order (seed %i)',
  async (seed) => {
    const { database, lane } = await setUp();
    let state = seed;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    const keyOf = new Map<number, string>();
    const enqueued = new Map<string, number[]>();
    const total = propertyRuns(30).numRuns;
    const producer = async (): Promise<void> => {
      for (let count = 0; count < total / 3; count++) {
        const key = `key ${random(5)}`;
        const callId = await add(database, lane, strict(key));
        keyOf.set(callId, key);
        // one after another for a key: what is sent at the same moment has no order
        const { promise, resolve } = Promise.withResolvers<void>();
        const before = releasing;
        releasing = promise;
        await before;
        expect(await change(lane, { op: 'release', callId })).toBe('ok');
        enqueued.set(key, [...(enqueued.get(key) ?? []), callId]);
        resolve();
      }
    };
    let releasing = Promise.resolve();
    const started = new Map<string, number[]>();
    const live = new Set<string>();
    let finished = 0;
    const runner = async (): Promise<void> => {
      const pool = openPool({ url: database.url, maxConnections: 1 });
      try {
        while (finished < total) {
          for (const call of await leaseCalls(pool, [1], 1 + random(4), 60)) {
            const key = keyOf.get(call.callId) ?? '';
            expect(live.has(key)).toBe(false);
            live.add(key);
            if (call.attempt === 1) started.set(key, [...(started.get(key) ?? []), call.callId]);
            if (random(3) === 0) await leaseCalls(pool, [1], 0, 60);
            live.delete(key);
            const op = (['complete', 'complete', 'retry', 'dead_letter'] as const)[random(4)] ?? 'complete';
            expect(await end(lane, call, op)).toBe('ok');
            if (op !== 'retry') finished += 1;
          }
        }
      } finally {
        await pool.end();
      }
    };
    await Promise.all([producer(), producer(), producer(), ...Array.from({ length: 6 }, runner)]);
    expect(started).toEqual(enqueued);
  },
);

/** Dead-letters all that is enqueued, as too old. */
async function endAll(database: TestDatabase, lane: Lane): Promise<void> {
  await database.asOwner((owner) =>
    owner.query(
      "update tollbook.call set enqueued_at = enqueued_at - interval '1 hour' where status = 'ready'",
    ),
  );
  const old = { except: [], max: 99, maxAgeSecs: 3_600, leaseSecs: 60 };
  for (const { callId, leaseId } of await takeOldCalls(database.pool, old))
    expect(await change(lane, { op: 'dead_letter', callId, leaseId })).toBe('ok');
}

test('calls that become too old while they wait for their turn get none as dead letters, or keep it, as their policy says', async () => {
  const { database, lane, lease, ids } = await setUp();
  await enqueue(database, lane, strict('skip'));
  const skipping = only(await lease());
  await enqueue(database, lane, strict('skip'));
  await endAll(database, lane);
  const later = await enqueue(database, lane, strict('skip'));
  await end(lane, skipping, 'complete');
  expect(await ids()).toEqual([later]);

  const keeping = { ...strict('block'), keepsPlace: true };
  await enqueue(database, lane, keeping);
  const first = only(await lease());
  const old = await enqueue(database, lane, keeping);
  await endAll(database, lane);
  const behind = await enqueue(database, lane, keeping);
  await end(lane, first, 'complete');
  expect(await ids()).toEqual([]);
  await change(lane, { op: 'requeue', callId: old });
  await end(lane, only(await lease()), 'complete');
  expect(await ids()).toEqual([behind]);
});
