import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createApiKey } from '../../../src/accounts/store/api-keys.ts';
import type { LaneCommand } from '../../../src/ledger/store/append-batch.ts';
import { leaseCalls, pullDueTimes, putBody } from '../../../src/calls/store/calls.ts';
import { readLogTip, takeAnchor } from '../../../src/audit/store/log.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { takeUnsettled } from '../../../src/payments/store/unsettled.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { admission, codeOf, fund, databaseWithLane } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { paidWith, newStream, refused } from '../../support/events.ts';

const hourSecs = 3_600;

/** A lane whose last event is stamped an hour ahead, because the clock was for a moment. */
async function laneWithHourAhead() {
  const { database, lane } = await databaseWithLane();
  await database.moveClock(hourSecs);
  const at = await appendedAt(database, { stream: newStream(), events: [refused()] }, lane);
  expect(at - Date.now()).toBeGreaterThan(3_500_000);
  await database.moveClock(0);
  return { database, lane };
}

async function appendedAt({ pool }: TestDatabase, command: LaneCommand, lane: Lane) {
  expect(await lane.append(command)).toMatchObject({ outcome: 'ok' });
  const { events } = await readStream(pool, command.stream);
  return Date.parse(events.at(-1)?.at ?? '');
}

async function addCall({ pool }: TestDatabase, lane: Lane) {
  const bodyId = randomUUID();
  await putBody(pool, bodyId, undefined, Buffer.from('{}'));
  const stream = newStream();
  const add = { op: 'add', serviceId: 1, jobIndex: 0, bodyId } as const;
  const pay = { ...paidWith, payment: 'p' };
  const added = await lane.append({ stream, events: [refused()], call: { ...add, ...pay } });
  if (added.outcome !== 'ok' || added.call_id === null) throw new Error(`not added: ${added.outcome}`);
  return { stream, callId: added.call_id };
}

test('after the clock was an hour ahead only the time of events stays there: a new call is due immediately', async () => {
  const { database, lane } = await laneWithHourAhead();
  const { stream, callId } = await addCall(database, lane);
  const { events } = await readStream(database.pool, stream);
  expect(Date.parse(events[0]?.at ?? '') - Date.now()).toBeGreaterThan(3_500_000);
  expect(await takeUnsettled(database.pool, 1)).toMatchObject([{ callId, status: 'pending' }]);
  await lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
  const [leased] = await leaseCalls(database.pool, [1], 1, 60);
  expect(leased).toMatchObject({ callId });
  const retry = { op: 'retry', callId, leaseId: leased?.leaseId ?? '', delayMs: 0 } as const;
  await lane.append({ stream, events: [refused()], call: retry });
  expect(await leaseCalls(database.pool, [1], 1, 60)).toMatchObject([{ callId, attempt: 2 }]);
});

test('after the clock was an hour ahead the process still knows the real clock', async () => {
  const { lane } = await laneWithHourAhead();
  await lane.refresh();
  expect(Math.abs(lane.state.clockOffsetMs)).toBeLessThan(60_000);
});

test('after the clock was an hour ahead a key that has not expired is valid, and limits count the last minute', async () => {
  const { database, lane } = await laneWithHourAhead();
  const accountId = await fund(database, lane, 1_000n);
  const expiresAt = new Date(Date.now() + 600_000);
  const key = {
    accountId,
    hash: 'ab'.repeat(32),

    name: 'k',
    models: undefined,
    expiresAt,
    isOfUser: false,
  };
  const keyId = await createApiKey(database.pool, { ...key, capMicros: undefined });
  const command = admission({ accountId, keyId, perMinute: 1, holdMicros: 1n });
  const again = (change = {}) => {
    const admit = { ...command.admit, ...change, chatId: randomUUID() };
    return lane.appendCredit({ ...command, stream: newStream(), admit });
  };
  expect(codeOf(await again())).toBe('ok');
  expect(codeOf(await again())).toBe('rate_limit_exceeded');
  await database.moveClock(61);
  expect(codeOf(await again())).toBe('ok');
  await database.moveClock(hourSecs);
  expect(codeOf(await again({ keyId: undefined }))).toBe('ok');
  await database.moveClock(0);
  expect(codeOf(await again({ keyId: undefined })), 'an admission of the hour ahead').toBe('ok');
});

test('a call that was recorded while the clock was an hour ahead is due once the clock is right again', async () => {
  const { database, lane } = await databaseWithLane();
  await database.moveClock(hourSecs);
  const [pending, ready, leased] = [
    await addCall(database, lane),
    await addCall(database, lane),
    await addCall(database, lane),
  ];
  for (const { stream, callId } of [ready, leased])
    await lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
  const [lease] = await leaseCalls(database.pool, [1], 1, 60);
  await database.moveClock(0);
  expect(await takeUnsettled(database.pool, 9)).toEqual([]);
  // two that wait, and the age of the one with a lease, which does not end early
  expect(await pullDueTimes(database.pool, 100)).toBe(3);
  expect(await takeUnsettled(database.pool, 9)).toMatchObject([{ callId: pending.callId }]);
  const others = [ready.callId, leased.callId].filter((callId) => callId !== lease?.callId);
  expect((await leaseCalls(database.pool, [1], 9, 60)).map(({ callId }) => callId)).toEqual(others);
  expect(await pullDueTimes(database.pool, 100)).toBe(0);
});

test('a call that a busy runner asked to have later stays as late when due times are set right', async () => {
  const { database, lane } = await databaseWithLane();
  const { stream, callId } = await addCall(database, lane);
  await lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
  const [lease] = await leaseCalls(database.pool, [1], 1, 60);
  const leaseId = lease?.leaseId ?? '';
  const busy = {
    op: 'return_lease',
    callId,
    leaseId,
    delayMs: hourSecs * 1_000,
    reason: 'status_503',
  } as const;
  expect(await lane.append({ stream, events: [refused()], call: busy })).toMatchObject({ outcome: 'ok' });
  expect(await pullDueTimes(database.pool, 100)).toBe(0);
  expect(await leaseCalls(database.pool, [1], 1, 60)).toEqual([]);
});

test('a tree head and an anchor from before the clock was set back do not delay the next ones', async () => {
  const { pool, asOwner } = await createDatabase();
  await asOwner((owner) =>
    owner.query(`insert into tollbook.log_head values
      ('o', 1, 1, '\\x', 'first', clock_timestamp()), ('o', 2, 1, '\\x', 'second', clock_timestamp() + interval '1 hour');
      insert into tollbook.log_anchor values ('o', 'a', 1, clock_timestamp() + interval '1 hour')`),
  );
  expect((await readLogTip(pool, 'o')).head?.ageMs).toBeGreaterThan(3_500_000);
  expect(await takeAnchor(pool, 'o', 'a', 60_000)).toMatchObject({ size: 2 });
  expect(await takeAnchor(pool, 'o', 'a', 60_000)).toBeUndefined();
});
