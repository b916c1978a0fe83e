import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { AppendOutcome, Claim, LaneCommand } from '../../../src/ledger/store/append-batch.ts';
import { appendStatement, encodeCommand } from '../../../src/ledger/store/append-batch.ts';
import { leaseCalls, putBody } from '../../../src/calls/store/calls.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { Session, sessionConfig } from '../../../src/ledger/store/session.ts';
import { LaneClosedError } from '../../../src/ledger/store/flusher.ts';
import { type Lane, LaneFullError, openLane, type LaneOptions } from '../../../src/ledger/store/lane.ts';
import { readLeaves } from '../../../src/audit/store/log.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { holdDeadlines } from '../../support/deadlines.ts';
import {
  newStream,
  paidWith,
  quoteIssued,
  randomHex32,
  refused,
  replayDenied,
} from '../../support/events.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';
import { databaseWithLane } from '../../support/credit.ts';

function laneOn(database: TestDatabase, options: Partial<LaneOptions> = {}) {
  const lane = openLane({ url: database.url, role: writerRole, ...options });
  onTestFinished(() => lane.close(1_000));
  return lane;
}

function claimOf(key: string, binding = 'mine'): Claim {
  return { kind: 'transfer', owner: '', scope: '', key, binding };
}

const paymentClaim = (key: string, binding: string): Claim => ({
  ...claimOf(key, binding),
  kind: 'payment',
});

const outcomes = (all: readonly AppendOutcome[]): string[] => all.map(({ outcome }) => outcome).toSorted();

test('a command is recorded in its stream, and its leaf is canonical JSON that holds its place', async () => {
  const { database, lane } = await databaseWithLane();
  const stream = randomHex32();
  const event = quoteIssued();
  const appended = { outcome: 'ok', version: 1, seq: 1 };
  expect(await lane.append({ stream, expect: 0, events: [event] })).toMatchObject(appended);
  const { events } = await readStream(database.pool, stream);
  expect(events).toMatchObject([{ ...event, seq: 1, stream, version: 1 }]);
  const text = (await readLeaves(database.pool, 0, 1)).join();
  const parsed = JSON.parse(text) as Record<string, unknown>;
  expect(Object.keys(parsed)).toEqual(['at', 'data', 'lane', 'schema', 'seq', 'stream', 'type', 'version']);
  expect(JSON.stringify(parsed)).toBe(text);
});

test('an append that may wait shares the batch of the next one, and is recorded soon where none comes', async () => {
  const { database, lane } = await databaseWithLane();
  const append = (mayWaitMs = 0) => lane.append({ stream: newStream(), events: [refused()] }, { mayWaitMs });
  const batches = async (): Promise<number> =>
    (await database.pool.query<{ batch: number }>('select batch from tollbook.lane')).rows[0]?.batch ?? 0;
  await append();
  const deadlines = holdDeadlines();
  const waiting = append(60_000);
  expect([deadlines.running(), await batches()]).toEqual([[60_000], 1]);
  await Promise.all([waiting, append()]);
  expect(await batches()).toBe(2);
  await append(5);
  expect(await batches()).toBe(3);
  // closing waits for nothing
  const last = append(60_000);
  await lane.close(20_000);
  expect(await last).toMatchObject({ outcome: 'ok' });
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(5);
});

test('a command that expects another version is stale and records nothing', async () => {
  const { database, lane } = await databaseWithLane();
  const stream = newStream();
  await lane.append({ stream, expect: 0, events: [refused()] });
  expect(await lane.append({ stream, expect: 0, events: [refused()] })).toEqual({ outcome: 'stale' });
  expect(await lane.append({ stream, expect: 1, events: [refused()] })).toMatchObject({
    outcome: 'ok',
    version: 2,
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a command that loses a claim records only the refusal of that kind, and its result names the holder', async () => {
  const { database, lane } = await databaseWithLane();
  const [holder, loser, silent] = [newStream(), newStream(), newStream()];
  const contested = newStream();
  await lane.append({
    stream: holder,
    events: [refused()],
    claims: [claimOf('q'), paymentClaim('p', 'a')],
  });
  const lost = { stream: loser, events: { payment: [replayDenied()] } };
  expect(
    await lane.append({ stream: contested, events: [refused()], claims: [paymentClaim('p', 'b')], lost }),
  ).toEqual({
    outcome: 'lost',
    claim: 'payment',
    stream: holder,
  });
  const transferLost = await lane.append({
    stream: silent,
    events: [refused()],
    claims: [claimOf('q', 'x')],
    lost,
  });
  expect(transferLost).toEqual({ outcome: 'lost', claim: 'transfer', stream: holder });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.map(({ stream, type }) => [stream, type])).toEqual([
    [holder, 'request_refused'],
    [loser, 'payment_replay_denied'],
  ]);
});

test('a freed claim can be taken again, but only its own stream can free it', async () => {
  const { lane } = await databaseWithLane();
  const [first, stranger] = [newStream(), newStream()];
  const claims = [claimOf('q')];
  await lane.append({ stream: first, events: [refused()], claims });
  await lane.append({ stream: stranger, events: [refused()], freed: claims });
  expect(
    await lane.append({ stream: stranger, events: [refused()], claims: [claimOf('q', 'other')] }),
  ).toMatchObject({
    outcome: 'lost',
  });
  await lane.append({ stream: first, events: [refused()], freed: claims });
  expect(
    await lane.append({ stream: stranger, events: [refused()], claims: [claimOf('q', 'other')] }),
  ).toMatchObject({
    outcome: 'ok',
  });
});

test('of a hundred identical concurrent commands one is recorded, and the others are recognised as repetitions', async () => {
  const database = await createDatabase();
  const lanes = [laneOn(database), laneOn(database)];
  const stream = newStream();
  const command: LaneCommand = {
    stream,
    expect: 0,
    events: [refused()],
    claims: [paymentClaim('p', 'same')],
  };
  const all = await Promise.all(Array.from({ length: 100 }, (_, i) => lanes[i % 2]!.append(command)));
  expect(outcomes(all)).toEqual([
    ...Array.from({ length: 1 }, () => 'ok'),
    ...Array.from({ length: 99 }, () => 'same'),
  ]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('of fifty commands for one claim in one batch one wins, and forty-nine refusals are recorded', async () => {
  const database = await createDatabase();
  const lane = laneOn(database, { flushers: 1 });
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      lane.append({
        stream: newStream(),
        events: [refused()],
        claims: [paymentClaim('p', `binding-${i}`)],
        lost: { stream: newStream(), events: { payment: [replayDenied()] } },
      }),
    ),
  );
  expect(all.filter(({ outcome }) => outcome === 'ok')).toHaveLength(1);
  expect(all.filter(({ outcome }) => outcome === 'lost')).toHaveLength(49);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'payment_replay_denied')).toHaveLength(49);
});

test('the ledger refuses UPDATE, DELETE and TRUNCATE, also from its owner', async () => {
  const database = await createDatabase();
  await laneOn(database).append({ stream: newStream(), events: [refused()] });
  for (const statement of [
    'update tollbook.event set version = 2',
    'delete from tollbook.event',
    'truncate tollbook.event',
  ]) {
    await expect(database.asOwner((owner) => owner.query(statement))).rejects.toThrow(/append-only/);
  }
});

test('the writer role can append only through the function', async () => {
  const { pool } = await createDatabase();
  for (const statement of [
    `insert into tollbook.event (lane_id, seq, version, stream, type, at, data) values (1, 9, 1, 'x', 'y', now(), '')`,
    `update tollbook.lane set seq = 0`,
    `delete from tollbook.claim`,
    `insert into tollbook.claim (key, binding, stream) values ('a', 'b', 'c')`,
    `update tollbook.call set status = 'ready'`,
    `create function tollbook.clock2() returns int language sql as 'select 1'`,
  ]) {
    await expect(pool.query(statement)).rejects.toThrow(/permission denied/);
  }
});

test('a poison command fails alone: the rest of its batch is recorded', async () => {
  const database = await createDatabase();
  const lane = laneOn(database, { flushers: 1 });
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      lane.append({ stream: i === 13 ? 'no stream has spaces' : newStream(), events: [refused()] }),
    ),
  );
  expect(all.map(({ status }) => status)).toEqual(
    Array.from({ length: 20 }, (_, i) => (i === 13 ? 'rejected' : 'fulfilled')),
  );
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('an event that breaks its schema is refused before it reaches the database', async () => {
  const { lane } = await databaseWithLane();
  const event = { type: 'request_refused', data: { code: 'Free text!' } } as const;
  await expect(lane.append({ stream: newStream(), events: [event] })).rejects.toThrow(/pattern/);
});

test('the queue is bounded for first appends, and second appends go past it', async () => {
  const database = await createDatabase();
  const lane = laneOn(database, { maxQueued: 10, flushers: 1 });
  const append = (urgent: boolean) => lane.append({ stream: newStream(), events: [refused()] }, { urgent });
  const first = Array.from({ length: 30 }, () => append(false));
  const second = Array.from({ length: 30 }, () => append(true));
  const settled = await Promise.allSettled(first);
  const refusals = settled.filter((one) => one.status === 'rejected');
  expect(refusals).toHaveLength(20);
  expect(refusals.every(({ reason }) => reason instanceof LaneFullError)).toBe(true);
  expect(outcomes(await Promise.all(second))).toEqual(Array.from({ length: 30 }, () => 'ok'));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a batch that is sent twice under its number is done once and answered twice', async () => {
  const database = await createDatabase();
  const flusher = randomUUID();
  const statement = appendStatement(1, flusher, 1, 0, [
    encodeCommand({ stream: newStream(), events: [refused()] }),
  ]);
  const [once, again] = [await database.pool.query(statement), await database.pool.query(statement)];
  expect(again.rows).toEqual(once.rows);
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(1);
});

test('the number of a batch does not answer another batch, and the database does not show the names of flushers', async () => {
  const { pool, asOwner, db } = await createDatabase();
  const flusher = randomUUID();
  const batch = (batchNo: number) =>
    appendStatement(1, flusher, batchNo, 0, [encodeCommand({ stream: newStream(), events: [refused()] })]);
  await pool.query(batch(2));
  for (const batchNo of [2, 1]) await expect(pool.query(batch(batchNo))).rejects.toThrow(/was another one/);
  const { rows } = await pool.query('select lane_batch::text as shown from tollbook.lane_batch');
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows).replaceAll('-', '')).not.toContain(flusher.replaceAll('-', ''));
  expect(await asOwner((owner) => expectSoundLedger(db, owner))).toHaveLength(1);
});

test('connections killed under load lose nothing and repeat nothing', async () => {
  const { database, lane } = await databaseWithLane();
  const streams = Array.from({ length: 1_000 }, newStream);
  let done = 0;
  const appends = Promise.all(
    streams.map(async (stream) => {
      const outcome = await lane.append({ stream, expect: 0, events: [refused(), refused()] });
      done++;
      return outcome;
    }),
  );
  let kills = 0;
  while (done < streams.length && kills < 12) {
    kills += await database.asOwner(async (owner) => {
      const { rowCount } = await owner.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and query like 'select tollbook.append%'`,
      );
      return rowCount ?? 0;
    });
  }
  expect(outcomes(await appends)).toEqual(streams.map(() => 'ok'));
  expect(kills).toBeGreaterThan(0);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events).toHaveLength(streams.length * 2);
});

test('a client that disappears in the middle of its message does not stop the others', async () => {
  const database = await createDatabase();
  const socket = new net.Socket();
  const vanishing = new Session({ ...sessionConfig({ url: database.url }), stream: () => socket });
  vanishing.on('error', () => {});
  await vanishing.connect();
  const write = socket.write.bind(socket);
  socket.write = (chunk: Buffer) => write(chunk.subarray(0, chunk.length >> 1));
  const half = vanishing.query(
    appendStatement(1, randomUUID(), 1, 0, [encodeCommand({ stream: newStream(), events: [refused()] })]),
  );
  half.catch(() => {});
  const lane = laneOn(database);
  const all = await Promise.all(
    Array.from({ length: 100 }, () => lane.append({ stream: newStream(), events: [refused()] })),
  );
  expect(outcomes(all)).toEqual(Array.from({ length: 100 }, () => 'ok'));
  socket.destroy();
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(100);
});

test('a lane whose row is locked waits, and continues when the lock is released', async () => {
  const { database, lane } = await databaseWithLane();
  await database.asOwner(async (owner) => {
    await owner.query('begin; select from tollbook.lane for update');
    const waiting = lane.append({ stream: newStream(), events: [refused()] });
    await eventually(async () => {
      const locked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      const { rowCount } = await database.asOwner((other) => other.query(locked));
      expect(rowCount).toBe(1);
    });
    await owner.query('rollback');
    expect(await waiting).toMatchObject({ outcome: 'ok' });
  });
});

test('times in the ledger never go back, even when the clock does', async () => {
  const { database, lane } = await databaseWithLane();
  await database.moveClock(3_600);
  await lane.append({ stream: newStream(), events: [refused()] });
  await database.moveClock(-3_600);
  await lane.append({ stream: newStream(), events: [refused()] });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events[1]?.at).toBe(events[0]?.at);
});

test('closing finishes the queued commands and accepts no new ones', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url });
  const queued = Array.from({ length: 50 }, () => lane.append({ stream: newStream(), events: [refused()] }));
  await lane.close();
  expect(outcomes(await Promise.all(queued))).toEqual(Array.from({ length: 50 }, () => 'ok'));
  await expect(lane.append({ stream: newStream(), events: [refused()] })).rejects.toThrow(LaneClosedError);
});

test('closing while the database is unreachable gives up after its grace', async () => {
  const lane = openLane({ url: 'postgresql://nobody@127.0.0.1:1/nothing' });
  const append = lane.append({ stream: newStream(), events: [refused()] });
  append.catch(() => {});
  await lane.close(100);
  await expect(append).rejects.toThrow(LaneClosedError);
  expect(lane.state.brokenSince).toBeDefined();
});

/** Adds a call that waits for its release, and returns its id. */
async function holdCall(lane: Lane, stream: string, bodyId: string): Promise<number> {
  const held = await lane.append({
    stream,
    events: [refused()],
    call: {
      op: 'add',
      serviceId: 1,
      jobIndex: 0,
      bodyId,
      ...paidWith,
      payment: 'eip155:1/eip3009/0x/0x/0x',
      delayMs: 5_000,
    },
  });
  return held.outcome === 'ok' ? (held.call_id ?? 0) : 0;
}

test('a held call cannot be leased before it is released, and a lost lease fences its holder', async () => {
  const { database, lane } = await databaseWithLane();
  const stream = newStream();
  const bodyId = randomUUID();
  await putBody(database.pool, bodyId, 'text/plain', Buffer.from('body'));
  const callId = await holdCall(lane, stream, bodyId);
  expect(await leaseCalls(database.pool, [1], 10, 60)).toEqual([]);
  await lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
  const [first] = await leaseCalls(database.pool, [1], 10, 60);
  expect(first).toMatchObject({ callId, attempt: 1, stream, contentType: 'text/plain' });
  expect(first?.body?.toString()).toBe('body');
  expect(await leaseCalls(database.pool, [1], 10, 60)).toEqual([]);

  await database.moveClock(61);
  const [second] = await leaseCalls(database.pool, [1], 10, 60);
  expect(second).toMatchObject({ callId, attempt: 2 });
  const complete = (leaseId: string) =>
    lane.append({ stream, events: [refused()], call: { op: 'complete', callId, leaseId } });
  expect(await complete(first?.leaseId ?? '')).toEqual({ outcome: 'lease_lost' });
  expect(await complete(second?.leaseId ?? '')).toMatchObject({ outcome: 'ok' });
  expect(await complete(second?.leaseId ?? '')).toEqual({ outcome: 'lease_lost' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a call that is being leased at this moment delays its own command, not the lane', async () => {
  const { database, lane } = await databaseWithLane();
  const stream = newStream();
  const callId = await holdCall(lane, stream, randomUUID());
  await database.asOwner(async (owner) => {
    await owner.query('begin; select from tollbook.call for update');
    const release = lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
    const others = Array.from({ length: 50 }, () =>
      lane.append({ stream: newStream(), events: [refused()] }),
    );
    expect(outcomes(await Promise.all(others))).toEqual(others.map(() => 'ok'));
    await owner.query('rollback');
    expect(await release).toMatchObject({ outcome: 'ok' });
  });
});
