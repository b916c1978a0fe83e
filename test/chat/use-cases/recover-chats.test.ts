import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { recoverChats } from '../../../src/chat/use-cases/recover-chats.ts';
import type { Admission } from '../../../src/ledger/store/append-batch.ts';
import { findAccount, markHoldsStarted } from '../../../src/accounts/store/credit.ts';
import { sendHeartbeat } from '../../../src/ledger/store/processes.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import {
  admission,
  codeOf,
  expectBooks,
  fund,
  laneOn,
  settle,
  databaseWithLane,
} from '../../support/credit.ts';
import { type TestDatabase } from '../../support/database.ts';
import { logLines } from '../../support/log-lines.ts';
import { presence } from '../../../src/base/values/presence.ts';

const { silentSecs } = presence;

/** A process that looks after the holds of others. */
function recovererOn(database: TestDatabase, logger = pino({ level: 'silent' })) {
  const context = { ...database, lane: laneOn(database), processId: randomUUID(), log: logger };
  return { ...context, recover: () => recoverChats(context, silentSecs) };
}

interface Living {
  readonly processId: string;
}

/** A database's clock that stands still between two calls, so that no time passes in which a busy machine does nothing. */
function timeOf({ asOwner, pool }: TestDatabase) {
  const startedAt = new Date().toISOString();
  const stopClock = (secs: number) =>
    asOwner((owner) =>
      owner.query(
        `create or replace function tollbook.clock() returns timestamptz language sql volatile
         as $$ select timestamptz '${startedAt}' + interval '${secs} seconds' $$`,
      ),
    );
  let now = 0;
  /** Advances it in steps in which these processes send heartbeats. */
  const pass = async (secs: number, ...living: readonly Living[]): Promise<void> => {
    for (const end = now + secs; ; now = Math.min(now + 3, end)) {
      await stopClock(now);
      for (const { processId } of living) await sendHeartbeat(pool, processId, silentSecs);
      if (now === end) return;
    }
  };
  return { stopClock, pass };
}

async function hold(lane: Lane, accountId: number, processId: string): Promise<Admission> {
  const command = admission({ accountId, processId, holdMicros: 100n });
  expect(codeOf(await lane.appendCredit(command))).toBe('ok');
  return command.admit;
}

const chatEvents = (events: readonly RecordedEvent[], { chatId }: Pick<Admission, 'chatId'>) =>
  events.filter(({ stream }) => stream === `chat:${chatId}`).map(({ type, data }) => ({ type, data }));

async function setUp() {
  const { database, lane } = await databaseWithLane();
  const accountId = await fund(database, lane, 1_000n);
  const owner = { processId: randomUUID() };
  return { database, lane, accountId, owner, ...timeOf(database) };
}

/** The same with a process that looks after its holds; both have had a heartbeat. */
async function withRecoverer() {
  const all = await setUp();
  const recoverer = recovererOn(all.database);
  await all.pass(0, all.owner, recoverer);
  return { ...all, recoverer, holdOne: () => hold(all.lane, all.accountId, all.owner.processId) };
}

describe('the hold of a process without heartbeats', () => {
  test('is captured when the upstream had begun to answer, and released otherwise', async () => {
    const { database, accountId, pass, recoverer, holdOne } = await withRecoverer();
    const [started, waiting] = [await holdOne(), await holdOne()];
    await markHoldsStarted(database.pool, [started.chatId]);
    await pass(16, recoverer);
    expect(await recoverer.recover()).toBe(2);
    const events = await expectBooks(database);
    const amount = { account_id: accountId, amount_micros: '100' };
    expect(chatEvents(events, started).slice(2)).toEqual([
      {
        type: 'chat_completed',
        data: {
          ending: 'recovered',
          model: 'small',
          prompt_tokens: 0,
          completion_tokens: 0,
          is_estimate: true,
          cost_micros: '100',
          reason: 'process_lost',
        },
      },
      { type: 'credit_captured', data: { ...amount, chat_id: started.chatId, is_estimate: true } },
    ]);
    expect(chatEvents(events, waiting).slice(2)).toEqual([
      { type: 'chat_failed', data: { reason: 'process_lost', model: 'small' } },
      { type: 'credit_released', data: { ...amount, chat_id: waiting.chatId } },
    ]);
    expect(await findAccount(database.db, { accountId })).toMatchObject({
      balanceMicros: 900,
      heldMicros: 0,
      usedMicros: 100,
    });
  });

  test('is kept while a heartbeat is recent enough', async () => {
    const { owner, pass, recoverer, holdOne } = await withRecoverer();
    await holdOne();
    await pass(60, owner, recoverer);
    await pass(14, recoverer);
    expect(await recoverer.recover()).toBe(0);
    await pass(2, recoverer);
    expect(await recoverer.recover()).toBe(1);
  });

  test('is ended as soon after a clock that stepped forward for a moment, and not before its process can be heard', async () => {
    const { database, lane, accountId, owner, pass, stopClock } = await setUp();
    const recoverer = recovererOn(database);
    await pass(20, owner, recoverer);
    await stopClock(7_220);
    await sendHeartbeat(database.pool, owner.processId, silentSecs);
    await sendHeartbeat(database.pool, recoverer.processId, silentSecs);
    await hold(lane, accountId, owner.processId);
    await stopClock(20);
    expect(await recoverer.recover()).toBe(0);
    await pass(14, recoverer);
    expect(await recoverer.recover()).toBe(0);
    await pass(2, recoverer);
    expect(await recoverer.recover()).toBe(1);
  });

  test('is ended once by concurrent recoveries in three processes', async () => {
    const { database, lane, accountId, owner, pass } = await setUp();
    const recoverers = [recovererOn(database), recovererOn(database), recovererOn(database)];
    const held: Admission[] = [];
    await pass(0, owner, ...recoverers);
    for (let at = 0; at < 10; at++) held.push(await hold(lane, accountId, owner.processId));
    await markHoldsStarted(
      database.pool,
      held.filter((_, at) => at % 2).map(({ chatId }) => chatId),
    );
    await pass(16, ...recoverers);
    const ended = await Promise.all(recoverers.map(({ recover }) => recover()));
    expect(ended.reduce((sum, count) => sum + count, 0)).toBe(10);
    for (const { chatId } of held)
      expect(chatEvents(await expectBooks(database), { chatId })).toHaveLength(4);
    expect(await findAccount(database.db, { accountId })).toMatchObject({
      balanceMicros: 500,
      heldMicros: 0,
      usedMicros: 500,
    });
  });

  test('is ended once when its owner settles it at the same time', async () => {
    const { database, lane, accountId, pass, recoverer, holdOne } = await withRecoverer();
    const held: Admission[] = [];
    for (let at = 0; at < 10; at++) held.push(await holdOne());
    await markHoldsStarted(
      database.pool,
      held.map(({ chatId }) => chatId),
    );
    await pass(16, recoverer);
    const [ended, ...settled] = await Promise.all([
      recoverer.recover(),
      ...held.map((admit) => settle(lane, admit, 40n, 60n)),
    ]);
    const own = settled.filter(({ outcome }) => outcome === 'ok').length;
    expect(ended + own).toBe(10);
    expect(new Set(settled.map(codeOf))).not.toContain('invalid_api_key');
    const events = await expectBooks(database);
    expect(events.filter(({ type }) => type === 'credit_corrected')).toHaveLength(ended);
    // whichever process was first, each completion has its actual cost
    expect(await findAccount(database.db, { accountId })).toMatchObject({ heldMicros: 0, usedMicros: 400 });
  });

  test.each(['started', 'waiting'])(
    'is kept when its owner has a heartbeat again meanwhile: %s',
    async (state) => {
      const { database, lane, accountId, owner, pass, recoverer, holdOne } = await withRecoverer();
      const { chatId } = await holdOne();
      if (state === 'started') await markHoldsStarted(database.pool, [chatId]);
      await pass(16, recoverer);
      const late: Lane = {
        ...recoverer.lane,
        async appendCredit(command, options) {
          await sendHeartbeat(database.pool, owner.processId, silentSecs);
          return lane.appendCredit(command, options);
        },
      };
      expect(await recoverChats({ ...recoverer, lane: late }, silentSecs)).toBe(0);
      expect(await findAccount(database.db, { accountId })).toMatchObject({ heldMicros: 100 });
      await pass(16, recoverer);
      expect(await recoverer.recover()).toBe(1);
      await expectBooks(database);
    },
  );

  test('is kept by a process whose own heartbeats were missing meanwhile', async () => {
    const { database, lane, pass, stopClock, recoverer, holdOne } = await withRecoverer();
    await holdOne();
    await pass(16, recoverer);
    const late: Lane = {
      ...recoverer.lane,
      async appendCredit(command, options) {
        await stopClock(60);
        return lane.appendCredit(command, options);
      },
    };
    expect(await recoverChats({ ...recoverer, lane: late }, silentSecs)).toBe(0);
    await expectBooks(database);
  });

  test('that was captured in full is corrected once, when its owner reports the actual cost', async () => {
    const { database, lane, accountId, pass, recoverer, holdOne } = await withRecoverer();
    const [started, waiting] = [await holdOne(), await holdOne()];
    await markHoldsStarted(database.pool, [started.chatId]);
    await pass(16, recoverer);
    expect(await recoverer.recover()).toBe(2);
    for (let times = 0; times < 2; times++)
      for (const admit of [started, waiting])
        expect(codeOf(await settle(lane, admit, 30n, 70n))).toBe('gone');
    const events = await expectBooks(database);
    expect(chatEvents(events, started).at(-1)).toEqual({
      type: 'credit_corrected',
      data: { account_id: accountId, chat_id: started.chatId, amount_micros: '70' },
    });
    expect(events.filter(({ type }) => type === 'credit_corrected')).toHaveLength(1);
    expect(await findAccount(database.db, { accountId })).toMatchObject({
      balanceMicros: 970,
      usedMicros: 30,
    });
  });

  test('is not released once its upstream has begun to answer', async () => {
    const { database, lane, accountId, owner } = await setUp();
    const { chatId } = await hold(lane, accountId, owner.processId);
    await markHoldsStarted(database.pool, [chatId]);
    const release = { op: 'settle', chatId, capturedMicros: 0n, releasedMicros: 100n } as const;
    const stream = `chat:${chatId}`;
    const late = await lane.appendCredit({ stream, events: [], credit: { ...release, isUnstarted: true } });
    expect(codeOf(late)).toBe('gone');
    await expectBooks(database);
  });
});

describe('a process does not end the holds of others', () => {
  test('before or right after its first heartbeat', async () => {
    const { database, lane, accountId, owner, pass } = await setUp();
    await pass(0, owner);
    await hold(lane, accountId, owner.processId);
    await pass(60);
    const recoverer = recovererOn(database);
    expect(await recoverer.recover()).toBe(0);
    await pass(14, recoverer);
    expect(await recoverer.recover()).toBe(0);
    await pass(2, recoverer);
    expect(await recoverer.recover()).toBe(1);
  });

  test('when its own heartbeats were missing, as during an outage of the database', async () => {
    const { database, lane, accountId, owner, pass, stopClock } = await setUp();
    const recoverer = recovererOn(database);
    await pass(60, owner, recoverer);
    await hold(lane, accountId, owner.processId);
    await stopClock(80);
    // no process has sent a heartbeat since
    expect(await recoverer.recover()).toBe(0);
    await sendHeartbeat(database.pool, recoverer.processId, silentSecs);
    expect(await recoverer.recover()).toBe(0);
    await sendHeartbeat(database.pool, owner.processId, silentSecs);
    await pass(40, owner, recoverer);
    expect(await recoverer.recover()).toBe(0);
  });

  test('that are new and whose process has no heartbeat yet', async () => {
    const { database, lane, accountId, pass } = await setUp();
    const recoverer = recovererOn(database);
    await pass(60, recoverer);
    await hold(lane, accountId, randomUUID());
    expect(await recoverer.recover()).toBe(0);
    await pass(16, recoverer);
    expect(await recoverer.recover()).toBe(1);
  });

  test('and never ends its own holds', async () => {
    const { database, lane, accountId, pass } = await setUp();
    const recoverer = recovererOn(database);
    await pass(60, recoverer);
    await hold(lane, accountId, recoverer.processId);
    await pass(60, recoverer);
    expect(await recoverer.recover()).toBe(0);
  });
});

test('holds that cannot be ended are logged, and do not stop the others', async () => {
  const { database, lane, accountId, owner, pass } = await setUp();
  const { lines, logger } = logLines();
  const recoverer = recovererOn(database, logger);
  await pass(0, owner, recoverer);
  for (let at = 0; at < 40; at++) {
    const { admit } = admission({ accountId, processId: owner.processId, holdMicros: 1n });
    // a chat admitted without an event, which cannot be recovered
    await lane.appendCredit({ stream: `chat:${admit.chatId}`, events: [], admit });
  }
  const whole = await hold(lane, accountId, owner.processId);
  await pass(16, recoverer);
  expect(await recoverer.recover()).toBe(1);
  const faults = lines.filter(({ level }) => level === 50);
  expect(new Set(faults.map((line) => line['chat_id'])).size).toBe(40);
  expect(await database.pool.query('select from tollbook.chat_hold')).toMatchObject({ rowCount: 40 });
  expect(lines.filter(({ level }) => level === 40)).toMatchObject([{ chat_id: whole.chatId }]);
});
