import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { openUserAccount } from '../../../src/accounts/store/identity.ts';
import { grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { endUserSessions, noteSession } from '../../../src/accounts/use-cases/sessions.ts';
import { recordRefusal } from '../../../src/accounts/use-cases/sign-in-limits.ts';
import { createUserApiKey, takeKeyTurn } from '../../../src/accounts/use-cases/user-api-keys.ts';
import { createEventAllowance } from '../../../src/ledger/store/event-allowance.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { freeModel, startChatGateway } from '../../support/chat-gateway.ts';
import { goodPassword, useIdentityGateway } from '../../support/identity.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';

const gateway = useIdentityGateway();

test('strangers’ refused sign-ins have separate events up to an allowance, and beyond it one sum', async () => {
  const database = await createDatabase();
  const { pool, db } = database;
  const lane = laneOn(database);
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const requestTally = createRequestTally();
  const refusalEvents = await createEventAllowance({ pool, log }, 'refused_sign_in', 1);
  const identity = { lane, refusalEvents, requestTally };
  for (let tried = 0; tried < 1_000; tried++) await recordRefusal(identity, 'password', 'wrong');
  await requestTally.record(lane);
  const events = await allEvents(db);
  const own = events.filter(({ type }) => type === 'sign_in_refused').length;
  // a burst of 200, and one for each second that this took
  expect(own).toBeGreaterThanOrEqual(50);
  expect(own).toBeLessThan(400);
  const [sum, ...others] = events.filter(({ type }) => type !== 'sign_in_refused');
  expect(others).toEqual([]);
  expect(sum).toMatchObject({
    type: 'refusals_counted',
    data: { counts: { sign_in_refused: 1_000 - own } },
  });
  await database.asOwner((owner) => expectSoundLedger(db, owner));
});

test.each(['wallet', 'provider', 'password'] as const)(
  'five hundred people who sign up by %s leave one event each up to an allowance, and beyond it one sum',
  async (method) => {
    const database = await createDatabase();
    const { pool, db } = database;
    const ledger = { pool, lane: laneOn(database), requestTally: createRequestTally() };
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const sessionEvents = {
      strangers: await createEventAllowance({ pool, log }, 'session', 1),
      customers: await createEventAllowance({ pool, log }, 'customer_session', 1),
    };
    const signIn = async (userId: string): Promise<string> => {
      const sessionId = randomUUID();
      const expiresAt = new Date(Date.now() + 86_400_000);
      await noteSession({ ...ledger, sessionEvents }, { sessionId, userId, method, expiresAt });
      return sessionId;
    };
    const customer = randomUUID();
    const { accountId } = await openUserAccount(pool, customer);
    await grantCredit(ledger, accountId, 1n);
    const users = Array.from({ length: 500 }, () => randomUUID());
    for (const userId of users) await signIn(userId);
    // again, which is not a sign-up any more
    for (const userId of users.slice(0, 10)) await signIn(userId);
    const session = await signIn(customer);
    await ledger.requestTally.record(ledger.lane);
    const events = await allEvents(db);
    const started = events.filter(({ type }) => type === 'session_started');
    const signUps = started.filter(({ data }) => 'is_sign_up' in data).length;
    expect(started.length).toBeGreaterThanOrEqual(50);
    // a burst of 200, and one for each second that this took
    expect(started.length).toBeLessThan(400);
    expect(started.map(({ stream }) => stream)).toContain(`session:${session}`);
    expect(events.filter(({ type }) => type !== 'session_started').map(({ type }) => type)).toEqual([
      'credit_account_opened',
      'credit_granted',
      'sessions_counted',
    ]);
    expect(events.at(-1)?.data).toEqual({
      sessions: [{ method, count: 511 - started.length, sign_ups: 500 - signUps }],
    });
    await database.asOwner((owner) => expectSoundLedger(db, owner));
  },
);

test('the end of a session whose start was counted alone leaves no event', async () => {
  const database = await createDatabase();
  const ledger = { pool: database.pool, lane: laneOn(database), requestTally: createRequestTally() };
  const none = { take: () => false };
  const userId = randomUUID();
  const sessionId = randomUUID();
  await database.pool.query(
    `insert into identity."user" (id, name, email, created_at, updated_at) values ($1, 'Eve', 'eve@example.org', now(), now())`,
    [userId],
  );
  await database.pool.query(
    `insert into identity.session (id, user_id, token, expires_at, created_at, updated_at)
     values ($1, $2, 'a hash', now() + interval '1 day', now(), now())`,
    [sessionId, userId],
  );
  const sessionEvents = { strangers: none, customers: none };
  const expiresAt = new Date(Date.now() + 86_400_000);
  await noteSession({ ...ledger, sessionEvents }, { sessionId, userId, method: 'wallet', expiresAt });
  expect(await endUserSessions(ledger, [sessionId])).toBe(1);
  expect((await database.pool.query('select from identity.session')).rowCount).toBe(0);
  expect(await allEvents(database.db)).toEqual([]);
});

test('a sign-up without any sign-in leaves no event', async () => {
  const { browser, email, newEvents } = await gateway();
  const body = { email, password: goodPassword, name: 'Eve' };
  expect((await browser().post('/api/auth/sign-up/email', body)).status).toBe(200);
  expect(await newEvents()).toEqual([]);
});

test('refused completions of strangers leave one event each up to an allowance, and beyond it one sum; those of customers are recorded', async () => {
  const chat = await startChatGateway({
    constants: { chat: { anonymousPerMinute: 1 }, limits: { quoteEventsPerSec: 1 } },
  });
  const { database } = chat;
  const ask = { model: freeModel, messages: [{ role: 'user', content: 'x' }] };
  // twenty at a time: under load, three hundred simultaneous ones exceed the time limit of a connection, and get 503
  const askAll = async (): Promise<Set<number>> => {
    const statuses = new Set<number>();
    const askFrom = async (network: number): Promise<void> => {
      for (let host = 0; host < 15; host++)
        statuses.add((await chat.post(ask, { 'x-forwarded-for': `198.51.${network}.${host}` })).status);
    };
    await Promise.all(Array.from({ length: 20 }, (_, network) => askFrom(network)));
    return statuses;
  };
  expect(await askAll()).toEqual(new Set([200]));
  expect(await askAll()).toEqual(new Set([429]));
  // a repetition is in no sum
  expect(await askAll()).toEqual(new Set([429]));
  const poor = { ...ask, model: 'vendor/large' };
  const bearer = { authorization: `Bearer ${await chat.key(1n)}` };
  expect((await chat.post(poor, bearer)).status).toBe(402);
  await eventually(async () => {
    const events = await allEvents(database.db);
    const refused = events.flatMap((event) => (event.type === 'chat_refused' ? [event.data.caller] : []));
    const own = refused.filter((caller) => caller === 'anonymous').length;
    expect(own).toBeGreaterThanOrEqual(50);
    // a burst of 200, and one for each second that this took
    expect(own).toBeLessThan(290);
    expect(refused.filter((caller) => caller === 'api_key')).toHaveLength(1);
    const sums = events.flatMap((event) =>
      event.type === 'refusals_counted' ? [event.data.counts.chat_refused ?? 0] : [],
    );
    expect(sums.reduce((sum, count) => sum + count, 0)).toBe(300 - own);
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('keys of five hundred users without credit are made up to an allowance, and a customer makes one meanwhile', async () => {
  const database = await createDatabase();
  const ledger = { ...database, lane: laneOn(database) };
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const keyEvents = await createEventAllowance({ ...database, log }, 'key', 1);
  const identity = { pool: database.pool, ipv6Prefix: 64, keyEvents };
  const make = async (userId: string, address: string): Promise<number> => {
    const { accountId } = await openUserAccount(database.pool, userId);
    const user = { sessionId: 'a session', userId, accountId };
    const waitSecs = await takeKeyTurn(identity, user, address);
    if (waitSecs === 0) await createUserApiKey(ledger, user, { name: 'a' });
    return waitSecs;
  };
  const customer = randomUUID();
  await grantCredit(ledger, (await openUserAccount(database.pool, customer)).accountId, 1n);
  const waits: number[] = [];
  for (let at = 0; at < 500; at++)
    waits.push(await make(randomUUID(), `198.51.${Math.trunc(at / 100)}.${at % 100}`));
  expect(await make(customer, '203.0.113.1')).toBe(0);
  const made = waits.filter((waitSecs) => waitSecs === 0).length;
  expect(made).toBeGreaterThanOrEqual(50);
  expect(made).toBeLessThan(400);
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type === 'key_created')).toHaveLength(made + 1);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('users without credit at one address make thirty keys a minute, so that none uses up the allowance of all', async () => {
  const { pool } = await createDatabase();
  const identity = { pool, ipv6Prefix: 64, keyEvents: { take: () => true } };
  const waits: number[] = [];
  for (let at = 0; at < 31; at++) {
    const userId = randomUUID();
    const { accountId } = await openUserAccount(pool, userId);
    waits.push(await takeKeyTurn(identity, { sessionId: 'a session', userId, accountId }, '203.0.113.1'));
  }
  expect(waits.map((waitSecs) => waitSecs > 0)).toEqual([...Array(30).fill(false), true]);
});
