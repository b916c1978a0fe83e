import { expect, test } from 'vitest';
import { issueOperatorToken, revokeOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { failCall, leaseOne } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { payFor } from '../../support/payer.ts';
import type { OperatorScope } from '../../../src/base/values/operator-scope.ts';

const chain = useChain();
const runnerToken = 'a-secret-of-the-test-runner-of-length';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function start(database: TestDatabase): Promise<TestGateway> {
  return startTestGateway({
    database,
    chain,
    isDocumented: true,
    tables: '[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"',
    env: { RUNNER_TOKEN: runnerToken },
  });
}

async function withToken<T>(
  database: TestDatabase,
  scopes: readonly OperatorScope[],
  use: (issued: { token: string; tokenId: number; revoke: () => Promise<boolean> }) => Promise<T>,
  expiresAt?: Date,
): Promise<T> {
  const lane = openLane({ url: database.url, role: writerRole });
  const ledger = { ...database, lane };
  try {
    const issued = await issueOperatorToken(ledger, { name: 'ops', scopes, expiresAt });
    return await use({ ...issued, revoke: () => revokeOperatorToken(ledger, issued.tokenId) });
  } finally {
    await lane.close();
  }
}

/** Pays for a call that its runner refuses for good. */
async function deadLetter(gateway: TestGateway): Promise<number> {
  await payFor(gateway, '/x402/jobs/1/0');
  const leased = await leaseOne(gateway);
  await failCall(gateway, leased, { error: 'the model is missing' });
  return leased.call_id;
}

test("an operator lists dead letters with the runner's error, and enqueues them again", async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const callId = await deadLetter(gateway);
  await withToken(database, ['calls:read', 'calls:write'], async ({ token, tokenId }) => {
    const listed = await gateway.get('/operator/dead-letters', bearer(token));
    expect(listed.json.calls).toMatchObject([
      {
        call_id: callId,
        reason: 'runner_failed',
        runner: 'runner-1',
        last_error: 'the model is missing',
        attempts: 1,
      },
    ]);
    const requeue = () =>
      gateway.post(`/operator/dead-letters/${callId}/requeue`, { headers: bearer(token) });
    expect(await requeue()).toMatchObject({ status: 200, json: { call_id: callId, status: 'enqueued' } });
    expect(await requeue()).toMatchObject({ status: 404, json: { code: 'call_not_found' } });
    expect((await gateway.get('/operator/dead-letters', bearer(token))).json.calls).toEqual([]);
    const requeued = (await allEvents(database.db)).findLast(({ type }) => type === 'operator_requeued');
    expect(requeued?.data).toEqual({ call_id: callId, token_id: tokenId });
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('an operator requeues many dead letters by service, reason and time, gives others up, and pauses their runner', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const calls = [await deadLetter(gateway), await deadLetter(gateway), await deadLetter(gateway)] as const;
  await withToken(database, ['calls:read', 'calls:write'], async ({ token, tokenId }) => {
    const headers = { 'content-type': 'application/json', ...bearer(token) };
    const post = async (path: string, body: object = {}) =>
      (await gateway.post(`/operator/${path}`, { body: JSON.stringify(body), headers })).json;
    const requeue = (body: object) => post('dead-letters/requeue', body);
    const dead = async () =>
      (await gateway.get('/operator/dead-letters', bearer(token))).json.calls.map(
        ({ call_id: id }: { call_id: number }) => id,
      );
    expect(await post('runners/nobody/pause')).toMatchObject({ code: 'runner_not_found' });
    expect(await post('runners/runner-1/pause')).toEqual({ runner: 'runner-1', paused: true });

    const none = { requeued: 0, skipped: [], next: null };
    expect(await requeue({ service_id: 7 })).toEqual(none);
    expect(await requeue({ reason: 'status_400' })).toEqual(none);
    expect(await requeue({ before: '2020-01-01T00:00:00Z' })).toEqual(none);
    expect(await requeue({ days: 1 })).toMatchObject({ code: 'invalid_request' });
    expect(await requeue({ service_id: 1, reason: 'runner_failed', dry_run: true })).toEqual({
      ...none,
      requeued: 3,
    });
    expect(await dead()).toEqual(calls);
    expect(await requeue({ runner: 'runner-1', since: '2020-01-01T00:00:00Z', limit: 1 })).toEqual({
      ...none,
      requeued: 1,
      next: calls[0],
    });

    const why = { why: 'the model is gone' };
    // one that waits for its paused runner, and a dead letter
    for (const id of calls.slice(0, 2))
      expect(await post(`dead-letters/${id}/discard`, why)).toEqual({ call_id: id, status: 'discarded' });
    expect(await post(`dead-letters/${calls[0]}/discard`, why)).toMatchObject({ code: 'call_not_found' });
    expect(await dead()).toEqual([calls[2]]);
    expect(await requeue({})).toEqual({ ...none, requeued: 1 });
    const lease = { body: '{"max":9,"lease_secs":60}', headers: { ...headers, ...bearer(runnerToken) } };
    expect((await gateway.post('/runner/leases', lease)).json.calls).toEqual([]);
    expect(await post('runners/runner-1/resume')).toEqual({ runner: 'runner-1', paused: false });
    const leased = (await gateway.post('/runner/leases', lease)).json.calls;
    expect(leased).toMatchObject([{ call_id: calls[2] }]);
    expect(await post(`dead-letters/${calls[2]}/discard`, why)).toMatchObject({ code: 'call_leased' });
    const events = await allEvents(database.db);
    expect(events.filter(({ type }) => type === 'operator_discarded').map(({ data }) => data)).toEqual(
      calls.slice(0, 2).map((id) => ({ call_id: id, ...why, operator: 'ops', token_id: tokenId })),
    );
    expect(events.filter(({ type }) => type === 'dead_lettered').at(-1)?.data).toMatchObject({
      call_id: calls[0],
      reason: 'discarded',
    });
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a token allows only its scopes, and nothing once it is revoked or expired', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const ask = (token: string) => gateway.get('/operator/dead-letters', bearer(token));
  expect(await gateway.get('/operator/dead-letters')).toMatchObject({
    status: 401,
    json: { code: 'unauthorized' },
  });
  expect(await ask('tollbook_nonsense')).toMatchObject({ status: 401 });
  await withToken(database, ['audit:read'], async ({ token }) => {
    expect(await ask(token)).toMatchObject({ status: 403, json: { code: 'forbidden' } });
  });
  await withToken(database, ['calls:read'], async ({ token, revoke }) => {
    expect((await ask(token)).status).toBe(200);
    expect(await revoke()).toBe(true);
    expect((await ask(token)).status).toBe(401);
    expect(await revoke()).toBe(false);
  });
  const inAnHour = new Date(Date.now() + 3_600_000);
  await withToken(
    database,
    ['calls:read'],
    async ({ token }) => {
      expect((await ask(token)).status).toBe(200);
      await database.moveClock(3_601);
      expect((await ask(token)).status).toBe(401);
    },
    inAnHour,
  );
});
