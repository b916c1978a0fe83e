import { expect, test } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { asRunner } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import {
  type Answer,
  runnerSecret,
  startTestGateway,
  testConfig,
  type TestGateway,
} from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { payFor } from '../../support/payer.ts';
import { useShared } from '../../support/shared.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const token = runnerSecret;
const otherToken = 'a-secret-of-another-runner-of-length!';

/** Two services with one runner, a third with another. */
const runners = `
[[runners]]
name = "poller"
services = [1, 2]
mode = "lease"
token = "env:RUNNER_TOKEN"

[[runners]]
name = "other"
services = [3]
mode = "lease"
token = "env:OTHER_TOKEN"
`;
const jobs = [1, 2, 3]
  .map(
    (service) =>
      `[job_prices.${service}]\n0 = "1"\n[[job_policies]]\nservice_id = ${service}\njob_index = 0\ninvocation_mode = "public_paid"`,
  )
  .join('\n');

async function start(database: TestDatabase, delivery: ConstantChanges['delivery'] = { backoffCapMs: 1 }) {
  return startTestGateway({
    database,
    chain,
    isDocumented: true,
    jobs,
    tables: runners,
    constants: { delivery },
    env: { OTHER_TOKEN: otherToken },
  });
}

const lease = (gateway: TestGateway, more: object = {}, bearer = token) =>
  asRunner(gateway, '/runner/leases', { max: 10, lease_secs: 60, ...more }, bearer);

async function pay(gateway: TestGateway, service = 1, body = 'a body'): Promise<Answer> {
  const paid = await payFor(gateway, `/x402/jobs/${service}/0`, body);
  expect(paid.status).toBe(202);
  return paid;
}

test('a runner leases with either of its two tokens while they are replaced, and the log says when the second one was used', async () => {
  const database = await createDatabase();
  const [last, next] = [
    'the-token-of-the-runner-before-the-change',
    'the-token-of-the-runner-after-the-change-',
  ];
  const log = logLines();
  const two = (...tokens: readonly [string, string?]) => ({
    database,
    chain,
    jobs,
    logger: log.logger,
    files: { first: tokens[0], second: tokens[1] ?? '' },
    tables: `[[runners]]
name = "poller"
services = [1, 2]
mode = "lease"
token = ${tokens[1] === undefined ? '"file:first"' : '["file:first", "file:second"]'}`,
  });
  const gateway = await startTestGateway(two(last));
  const statuses = async () => [
    (await lease(gateway, {}, last)).status,
    (await lease(gateway, {}, next)).status,
  ];
  const uses = () => log.lines.filter(({ secret }) => secret === 'runners.poller.token').length;
  expect(await statuses()).toEqual([200, 401]);
  expect(await gateway.reload(await testConfig(two(last, next)))).toEqual([]);
  expect(uses()).toBe(0);
  expect(await statuses()).toEqual([200, 200]);
  expect(uses()).toBe(1);
  await gateway.reload(await testConfig(two(next, last)));
  expect(await statuses()).toEqual([200, 200]);
  await gateway.reload(await testConfig(two(next)));
  expect(await statuses()).toEqual([401, 200]);
  expect(JSON.stringify(log.lines)).not.toMatch(/the-token-(?:before|after)/);
});

function receiptOf(gateway: TestGateway, paid: Answer): Promise<Answer> {
  return gateway.get(`/x402/receipts/${paid.json.quote_digest}`, {
    authorization: `Bearer ${paid.json.receipt_token}`,
  });
}

test('a runner that polls gets its calls with their metadata, and its result is on the receipt', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const paid = await pay(gateway);
  const { json, status } = await lease(gateway);
  expect(status).toBe(200);
  expect(json.calls).toEqual([
    {
      call_id: paid.json.call_id,
      lease_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      attempt: 1,
      service_id: 1,
      job_index: 0,
      metadata: {
        'X-X402-ORIGIN': 'x402',
        'X-NET-TRIGGER': 'x402',
        'X-X402-QUOTE-DIGEST': paid.json.quote_digest,
        'X-X402-PAYMENT-NETWORK': 'eip155:84532',
        'X-X402-PAYMENT-ASSET': chain.token,
        'X-X402-PAYMENT-TOKEN': 'USDC',
        'X-NET-SERVICE-ID': '1',
        'X-NET-JOB-INDEX': '0',
        'X-NET-CALL-ID': String(paid.json.call_id),
        'X-NET-IDEMPOTENCY-KEY': expect.stringMatching(/^0x[0-9a-f]{64}$/),
        'X-NET-ATTEMPT': '1',
        'X-NET-MAX-RESULT-BYTES': '1048576',
      },
      content_type: 'text/plain',
      body_base64: Buffer.from('a body').toString('base64'),
      lease_expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
    },
  ]);
  expect((await receiptOf(gateway, paid)).json.state).toBe('delivered');
  const [{ call_id, lease_id }] = json.calls;
  const result = { content_type: 'application/x-odd', body_base64: Buffer.from([0, 255]).toString('base64') };
  expect((await asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id, result })).status).toBe(
    200,
  );
  expect((await receiptOf(gateway, paid)).json).toMatchObject({ state: 'completed', result });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.slice(-2).map(({ type }) => type)).toEqual(['delivered', 'completed']);
});

test('a completion sent again by its holder is 200 again; by anyone else it is lease_lost', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  await pay(gateway);
  const [{ call_id, lease_id }] = (await lease(gateway)).json.calls;
  const complete = (id: string) => asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id: id });
  expect((await complete(lease_id)).status).toBe(200);
  expect((await complete(lease_id)).status).toBe(200);
  expect(await complete('00000000-0000-4000-8000-000000000000')).toMatchObject({
    status: 409,
    json: { code: 'lease_lost' },
  });
  const { json } = await gateway.get('/x402/stats');
  expect(json.counters).toMatchObject({ delivered: 1, completed: 1 });
});

test('an expired lease is leased again, and its old holder can neither extend, complete nor fail it', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const paid = await pay(gateway);
  const [first] = (await lease(gateway)).json.calls;
  expect((await lease(gateway)).json.calls).toEqual([]);
  await database.moveClock(61);
  const [second] = (await lease(gateway)).json.calls;
  expect(second).toMatchObject({ call_id: first.call_id, attempt: 2 });
  const { call_id, lease_id } = first;
  const old = [
    await asRunner(gateway, `/runner/calls/${call_id}/extend`, { lease_id, lease_secs: 60 }),
    await asRunner(gateway, `/runner/calls/${call_id}/complete`, {
      lease_id,
      result: { body_base64: 'b2xk' },
    }),
    await asRunner(gateway, `/runner/calls/${call_id}/fail`, { lease_id, error: 'x', retry: true }),
  ];
  expect(old.map(({ status, json }) => [status, json.code])).toEqual(old.map(() => [409, 'lease_lost']));
  const done = { lease_id: second.lease_id, result: { body_base64: 'bmV3' } };
  expect((await asRunner(gateway, `/runner/calls/${call_id}/complete`, done)).status).toBe(200);
  expect((await receiptOf(gateway, paid)).json.result.body_base64).toBe('bmV3');
  expect((await asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id })).status).toBe(409);
});

test("a failure with retry is leased again, one without is dead-lettered with the runner's error for the operator", async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const paid = await pay(gateway);
  const [first] = (await lease(gateway)).json.calls;
  const fail = (call: { call_id: number; lease_id: string }, retry: boolean) =>
    asRunner(gateway, `/runner/calls/${call.call_id}/fail`, {
      lease_id: call.lease_id,
      error: 'no\u001b[31m luck',
      retry,
    });
  expect((await fail(first, true)).status).toBe(200);
  const [second] = (await lease(gateway, { wait_secs: 5 })).json.calls;
  expect(second).toMatchObject({ call_id: first.call_id, attempt: 2 });
  expect((await fail(second, false)).status).toBe(200);
  expect((await receiptOf(gateway, paid)).json.state).toBe('dead_lettered');
  const { rows } = await database.pool.query('select status, last_error from tollbook.call');
  expect(rows).toEqual([{ status: 'dead', last_error: 'no [31m luck' }]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('leases that run out use up attempts: a call that kills its runners ends dead-lettered', async () => {
  const database = await createDatabase();
  const gateway = await start(database, { maxAttempts: 3 });
  const paid = await pay(gateway);
  for (let attempt = 1; attempt <= 3; attempt++) {
    expect((await lease(gateway)).json.calls).toMatchObject([{ attempt }]);
    await database.moveClock(attempt * 100);
  }
  expect((await lease(gateway)).json.calls).toEqual([]);
  expect((await receiptOf(gateway, paid)).json.state).toBe('dead_lettered');
});

test('a long poll is answered as soon as a call is released, and empty when its time is over', async () => {
  const gateway = await start(await createDatabase());
  expect((await lease(gateway, { wait_secs: 1 })).json.calls).toEqual([]);
  const waiting = lease(gateway, { wait_secs: 30 });
  const paid = await pay(gateway);
  expect((await waiting).json.calls).toMatchObject([{ call_id: paid.json.call_id }]);
});

test('a runner that disconnects while it waits gets no lease', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const leaving = new AbortController();
  const waiting = fetch(`${gateway.url}/runner/leases`, {
    method: 'POST',
    body: JSON.stringify({ max: 1, lease_secs: 60, wait_secs: 30 }),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    signal: leaving.signal,
  });
  waiting.catch(() => {});
  await eventually(async () => {
    const { rows } = await database.asOwner((owner) =>
      owner.query(
        `select from pg_stat_activity
         where datname = current_database() and query like '%lease_calls%' and pid <> pg_backend_pid()`,
      ),
    );
    expect(rows.length).toBeGreaterThanOrEqual(1);
  });
  leaving.abort();
  await expect(waiting).rejects.toThrow(/abort/i);
  await pay(gateway);
  expect((await lease(gateway, { wait_secs: 5 })).json.calls).toMatchObject([{ attempt: 1 }]);
});

test('another runner sees neither the calls nor the leases of this one', async () => {
  const gateway = await start(await createDatabase());
  await pay(gateway);
  expect((await lease(gateway, {}, otherToken)).json.calls).toEqual([]);
  expect(await lease(gateway, { services: [1] }, otherToken)).toMatchObject({
    status: 403,
    json: { code: 'forbidden' },
  });
  const [{ call_id, lease_id }] = (await lease(gateway)).json.calls;
  for (const [path, body] of [
    ['extend', { lease_id, lease_secs: 60 }],
    ['complete', { lease_id }],
    ['fail', { lease_id, error: 'x', retry: false }],
  ] as const) {
    const answer = await asRunner(gateway, `/runner/calls/${call_id}/${path}`, body, otherToken);
    expect(answer).toMatchObject({ status: 409, json: { code: 'lease_lost' } });
  }
  expect((await asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id })).status).toBe(200);
});

const anyGateway = useShared(async () => start(await createDatabase()));

test.each([
  ['no token', '/runner/leases', { max: 1, lease_secs: 60 }, '', 401, 'unauthorized'],
  ['a wrong token', '/runner/leases', { max: 1, lease_secs: 60 }, 'x', 401, 'unauthorized'],
  ['nothing to take', '/runner/leases', { max: 0, lease_secs: 60 }, token, 400, 'invalid_request'],
  ['too much at a time', '/runner/leases', { max: 1e9, lease_secs: 60 }, token, 400, 'invalid_request'],
  ['a lease of a day', '/runner/leases', { max: 1, lease_secs: 86_400 }, token, 400, 'invalid_request'],
  ['a lease of no time', '/runner/leases', { max: 1, lease_secs: -1 }, token, 400, 'invalid_request'],
  [
    'an endless wait',
    '/runner/leases',
    { max: 1, lease_secs: 60, wait_secs: 1e6 },
    token,
    400,
    'invalid_request',
  ],
  ['half a call', '/runner/leases', { max: 1.5, lease_secs: 60 }, token, 400, 'invalid_request'],
  ['an unknown key', '/runner/leases', { max: 1, lease_secs: 60, more: 1 }, token, 400, 'invalid_request'],
  [
    'a lease id that is none',
    '/runner/calls/1/complete',
    { lease_id: "' or 1=1" },
    token,
    400,
    'invalid_request',
  ],
  [
    'a call id that is none',
    '/runner/calls/x/complete',
    { lease_id: '00000000-0000-4000-8000-000000000000' },
    token,
    409,
    'lease_lost',
  ],
  [
    'a result that is not a base64',
    '/runner/calls/1/complete',
    { lease_id: '00000000-0000-4000-8000-000000000000', result: { body_base64: '!' } },
    token,
    400,
    'invalid_request',
  ],
])('a request with %s is refused', async (_, path, body, bearer, status, code) => {
  expect(await asRunner(anyGateway(), path, body, bearer)).toMatchObject({ status, json: { code } });
});

test('a result over the limit is refused, and the lease continues', async () => {
  const gateway = await start(await createDatabase(), { maxResultBytes: 1_000 });
  await pay(gateway);
  const [{ call_id, lease_id }] = (await lease(gateway)).json.calls;
  const complete = (bytes: number) =>
    asRunner(gateway, `/runner/calls/${call_id}/complete`, {
      lease_id,
      result: { body_base64: Buffer.alloc(bytes).toString('base64') },
    });
  expect(await complete(1_001)).toMatchObject({ status: 413, json: { code: 'result_too_large' } });
  expect((await complete(1_000)).status).toBe(200);
});

test('a call whose runner disconnects during its delivery is released immediately and loses no attempt', async () => {
  const database = await createDatabase();
  const gateway = await start(database, { maxAttempts: 1 });
  await pay(gateway);
  const leaving = new AbortController();
  await database.asOwner(async (owner) => {
    // the lane waits, so that the runner disconnected before its call is on record as delivered
    await owner.query('begin; select from tollbook.lane for update');
    const asked = fetch(`${gateway.url}/runner/leases`, {
      method: 'POST',
      body: JSON.stringify({ max: 1, lease_secs: 3_600 }),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      signal: leaving.signal,
    });
    asked.catch(() => {});
    await eventually(async () => {
      const { rows } = await database.asOwner((other) =>
        other.query(`select from tollbook.call where status = 'leased'`),
      );
      expect(rows).toHaveLength(1);
    });
    leaving.abort();
    await expect(asked).rejects.toThrow(/abort/i);
    // a round trip later the gateway has seen that the runner disconnected
    await gateway.get('/x402/health');
    await gateway.get('/x402/health');
    await owner.query('rollback');
  });
  const again = await lease(gateway, { wait_secs: 10 });
  expect(again.json.calls).toMatchObject([{ attempt: 2 }]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
