import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { openUserAccount } from '../../../src/accounts/store/identity.ts';
import { grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { endUserSessions, noteSession } from '../../../src/accounts/use-cases/sessions.ts';
import { recordRefusal } from '../../../src/accounts/use-cases/sign-in-limits.ts';
import { createEventAllowance } from '../../../src/ledger/store/event-allowance.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { goodPassword, useIdentityGateway } from '../../support/identity.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';

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
    // again, which is no sign-up any more
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
