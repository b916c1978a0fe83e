import { expect, test } from 'vitest';
import { recordRefusal } from '../../../src/accounts/use-cases/sign-in-limits.ts';
import { createEventAllowance } from '../../../src/ledger/store/event-allowance.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { goodPassword, useIdentityGateway } from '../../support/identity.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';

const gateway = useIdentityGateway();

test('strangers’ refused sign-ins have events of their own up to an allowance, and beyond it one sum', async () => {
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

test('a sign-up that nobody ever signs in to leaves no event', async () => {
  const { browser, email, newEvents } = await gateway();
  const body = { email, password: goodPassword, name: 'Eve' };
  expect((await browser().post('/api/auth/sign-up/email', body)).status).toBe(200);
  expect(await newEvents()).toEqual([]);
});
