import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { leaseCalls, putBody, readWaitingCalls } from '../../src/store/calls.ts';
import type { Lane } from '../../src/store/lane.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { newStream, refused } from '../support/events.ts';

/** A call that runners may take. */
async function release(
  { pool }: TestDatabase,
  lane: Lane,
  { serviceId, bytes }: { readonly serviceId: number; readonly bytes: number },
): Promise<number> {
  const bodyId = randomUUID();
  await putBody(pool, bodyId, undefined, Buffer.alloc(bytes));
  const add = { op: 'add', serviceId, jobIndex: 0, bodyId } as const;
  const pay = { network: 'eip155:1', symbol: 'USDC', caller: undefined, payment: 'p', delayMs: 0 };
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

test('a lease of many calls stops once their bodies have 16 MiB, so that paid bodies do not exhaust memory', async () => {
  const database = await createDatabase();
  const lane = laneOn(database);
  for (let count = 0; count < 3; count++) await release(database, lane, { serviceId: 1, bytes: 9 * 2 ** 20 });
  const lease = async () => (await leaseCalls(database.pool, [1], 100, 60)).length;
  expect([await lease(), await lease(), await lease()]).toEqual([2, 1, 0]);
});
