import { expect, test } from 'vitest';
import { pauseRunner } from '../../../src/calls/use-cases/pause-runner.ts';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import { takeOldCalls } from '../../../src/calls/store/old-calls.ts';
import { asRunner, leasingRunner } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { expectSound } from '../../support/invariants.ts';
import { operatorOf as bearerOf } from '../../support/operator.ts';
import { tollbook } from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';
import { operatorOf, pay, reachesState, spendEventsOf, typesOf } from '../../app/workers/relay-support.ts';

const chain = useChain();
const daySecs = 86_400;

async function start(database: TestDatabase) {
  const tables = `${leasingRunner}\n[delivery]\nmax_call_age_secs = ${daySecs}`;
  const gateway = await startTestGateway({ database, chain, tables });
  const ask = (path: string, body: object) => asRunner(gateway, `/runner/${path}`, body);
  return { gateway, ask, lease: () => ask('leases', { max: 1, lease_secs: 3_600, wait_secs: 0 }) };
}

test('a call whose lease is extended again and again ends with its age: a dead letter, its refund due, the lease lost', async () => {
  const database = await createDatabase();
  const { gateway, ask, lease } = await start(database);
  const call = await pay(gateway);
  const endsMs = Date.now() + daySecs * 1_000;
  const [{ lease_id }] = (await lease()).json.calls;
  const extend = () => ask(`calls/${call.callId}/extend`, { lease_id, lease_secs: 3_600 });
  const expiries: number[] = [];
  for (let secs = 3_000; secs < daySecs; secs += 3_000) {
    await database.moveClock(secs);
    const { status, json } = await extend();
    expect(status).toBe(200);
    expiries.push(Date.parse(json.lease_expires_at));
  }
  // cut at the end of the call's age
  expect(expiries.at(-1)).toBeLessThanOrEqual(endsMs + 60_000);
  expect(expiries.at(-1)).toBeGreaterThan(endsMs - 60_000);
  await database.moveClock(daySecs + 60);
  expect(await extend()).toMatchObject({ status: 409, json: { code: 'lease_lost' } });
  await reachesState(call, 'dead_lettered');
  expect(await spendEventsOf(database, call)).toEqual([
    { type: 'delivered', data: { call_id: call.callId, attempt: 1 } },
    { type: 'dead_lettered', data: { call_id: call.callId, attempt: 1, reason: 'call_too_old' } },
  ]);
  const late = await ask(`calls/${call.callId}/complete`, { lease_id, result: { body_base64: '' } });
  expect(late).toMatchObject({ status: 409, json: { code: 'lease_lost' } });
  const due = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
  expect(due.stdout).toContain(call.digest);
  await expectSound(database);
});

test('a call that no runner takes ends with its age, and an operator who puts it back decides anew', async () => {
  const database = await createDatabase();
  const { gateway, lease } = await start(database);
  const operator = operatorOf(database);
  await pauseRunner(operator, { name: 'poller' }, { operator: 'ada' });
  const call = await pay(gateway);
  expect((await lease()).json.calls).toEqual([]);
  await database.moveClock(daySecs + 60);
  await reachesState(call, 'dead_lettered');
  expect(await requeueCall(operator, call.callId)).toEqual({ kind: 'requeued' });
  await database.moveClock(2 * daySecs);
  const old = { except: [], max: 9, maxAgeSecs: daySecs, leaseSecs: 60 };
  expect(await takeOldCalls(database.pool, old)).toEqual([]);
  await database.moveClock(2 * daySecs + 180);
  await eventually(async () =>
    expect(await typesOf(database, call)).toEqual(['dead_lettered', 'operator_requeued', 'dead_lettered']),
  );
  await expectSound(database);
});

test('the status tells how old the oldest call is that waits, and that a runner has', async () => {
  const database = await createDatabase();
  const { gateway, lease } = await start(database);
  const token = await bearerOf(database, ['status:read']);
  const ages = async () => {
    const { outbox } = (await gateway.get('/status', token)).json.jobs;
    return [outbox.oldest_enqueued_ms, outbox.oldest_leased_ms].map((ms) => ms && Math.round(ms / 60_000));
  };
  expect(await ages()).toEqual([undefined, undefined]);
  await pay(gateway);
  await lease();
  await pay(gateway);
  await database.asOwner((owner) =>
    owner.query(
      `update tollbook.call set enqueued_at = enqueued_at - case status when 'leased' then interval '2 hours' else interval '1 hour' end`,
    ),
  );
  await eventually(async () => expect(await ages()).toEqual([60, 120]));
});
