import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import pg from 'pg';
import { createLogger } from '../../../src/app/logger.ts';
import { programVersion } from '../../../src/app/version.ts';
import { createRunnerSilence } from '../../../src/jobs/use-cases/capacity.ts';
import { startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { ask, freeModel, oneModel } from '../../support/chat-gateway.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { fillDisk } from '../../support/full-disk.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, type TestGateway, startWithDatabase } from '../../support/gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { logLines } from '../../support/log-lines.ts';
import { header, payFor, quoteAndSign } from '../../support/payer.ts';
import { temporaryFolder } from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const token = 'a-secret-of-the-test-runner-of-length';
const json = { 'content-type': 'application/json' };

const leased = `
[[runners]]
name = "poller"
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;

/** Makes the open calls look as if they had been waiting for this long. */
function age(database: TestDatabase, seconds: number): Promise<unknown> {
  return database.asOwner((owner) =>
    owner.query(`update tollbook.call set due_at = due_at - interval '${seconds} seconds'`),
  );
}

/** New connections can only read, as on a standby; the present ones end. */
function readOnly(database: TestDatabase, isReadOnly: boolean): Promise<unknown> {
  return database.asOwner(async (owner) => {
    const name = pg.escapeIdentifier(owner.database ?? '');
    await owner.query('set default_transaction_read_only = off');
    await owner.query(`alter database ${name} set default_transaction_read_only = ${isReadOnly}`);
    await owner.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
  });
}

const isReady = async (gateway: TestGateway): Promise<boolean> =>
  (await gateway.get('/x402/ready')).status === 200;

test("one customer's stale call and an absent facilitator leave two gateways ready, and the returning runner drains the call", async () => {
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const model = await startModelUpstream({ port: 0 });
  onTestFinished(() => model.close());
  const options = {
    database,
    chain,
    facilitatorUrl: proxy.url,
    top: 'features = ["x402", "chat"]',
    tables: `${leased}\n${oneModel(model.url)}`,
    env: { RUNNER_TOKEN: token },
  };
  const gateways = [await startTestGateway(options), await startTestGateway(options)];
  const [one] = gateways as [TestGateway];
  const operator = await operatorOf(database, ['calls:read', 'status:read']);
  await eventually(async () => expect(await isReady(one)).toBe(true));
  const paid = await payFor(one, '/x402/jobs/1/0', 'x');
  await age(database, 3_600);
  for (const each of ['supported', 'verify', 'settle'] as const) proxy.faults[each] = 'server_error';

  for (const gateway of gateways) {
    const check = await documentOf(gateway);
    const told = await eventually(async () => {
      const answer = await gateway.get('/status', operator);
      expect(answer.json.jobs).toMatchObject({
        status: 'degraded',
        since: expect.any(String),
        facilitator: { ok: false, detail: 'unavailable: status_502', since: expect.any(String) },
        outbox: { open_calls: 1, services: [{ service_id: 1, waiting_calls: 1 }] },
        runners: [{ name: 'poller', mode: 'lease', services: [1], is_paused: false }],
      });
      return answer;
    });
    expect(told.json.jobs.outbox.services[0].oldest_waiting_ms).toBeGreaterThan(3_600_000);
    const state = await gateway.get('/status');
    expect(state.json).toEqual({
      status: 'degraded',
      ledger: { status: 'ok' },
      workers: { status: 'ok' },
      configuration: { status: 'ok' },
      jobs: { status: 'degraded' },
      chat: { status: 'ok' },
    });
    for (const answer of [told, state]) expect(check('GET', '/status', answer)).toEqual([]);
    for (const path of ['/x402/ready', '/v1/ready']) {
      const ready = await gateway.get(path);
      expect(ready).toMatchObject({
        status: 200,
        json: { status: 'ready', draining: false, database: { ok: true }, migrations: { ok: true } },
      });
      expect(check('GET', path, ready)).toEqual([]);
    }
    expect((await gateway.get(`/x402/receipts/${paid.json.quote_digest}`)).json.state).toBe('enqueued');
    expect((await gateway.get('/operator/dead-letters', operator)).status).toBe(200);
    const body = JSON.stringify(ask('hello', freeModel));
    expect((await gateway.post('/v1/chat/completions', { body, headers: json })).status).toBe(200);
  }
  const headers = { ...json, authorization: `Bearer ${token}` };
  const taken = await one.post('/runner/leases', { body: '{"max":1,"lease_secs":60}', headers });
  const { call_id, lease_id } = taken.json.calls[0];
  const body = JSON.stringify({ lease_id });
  expect((await one.post(`/runner/calls/${call_id}/complete`, { body, headers })).status).toBe(200);
  expect((await one.get(`/x402/receipts/${paid.json.quote_digest}`)).json.state).toBe('completed');
  expect((await one.get('/status', await operatorOf(database, ['calls:read']))).status).toBe(403);
});

test('a gateway is not ready while its database can only be read, and is ready again afterwards, with one log line for each', async () => {
  const database = await createDatabase();
  const { lines, logger } = logLines();
  const gateway = await startTestGateway({ database, chain, logger });
  await eventually(async () => expect(await isReady(gateway)).toBe(true));
  await readOnly(database, true);
  await eventually(async () =>
    expect(await gateway.get('/x402/ready')).toMatchObject({
      status: 503,
      json: { status: 'not_ready', database: { ok: false, detail: 'it takes no writes (25006)' } },
    }),
  );
  await readOnly(database, false);
  await eventually(async () => expect(await isReady(gateway)).toBe(true));
  expect(
    lines.filter(({ msg }) => /^the gateway is (not )?ready/.test(msg)).map(({ level }) => level),
  ).toEqual([30, 40, 30]);
});

test('a full disk, which an append or the heartbeat meets first, makes a gateway not ready', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  await eventually(async () => expect(await isReady(gateway)).toBe(true));
  for (const table of ['event', 'gateway_process']) {
    const empty = await fillDisk(database, [table]);
    const asked = gateway.post('/x402/jobs/1/0', { body: 'x' });
    await eventually(async () =>
      expect(await gateway.get('/x402/ready')).toMatchObject({
        status: 503,
        json: { database: { ok: false, detail: 'it takes no writes (53100)' } },
      }),
    );
    await empty();
    expect((await asked).status).toBe(402);
    await eventually(async () => expect(await isReady(gateway)).toBe(true));
  }
});

test('a database that lacks a migration of this program makes the gateway not ready; a newer one does not', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const change = (text: string) => database.asOwner((owner) => owner.query(text));
  await change(`insert into tollbook.migration values ('9999-of-the-next-version', now())`);
  await eventually(async () => expect(await isReady(gateway)).toBe(true));
  await change(`update tollbook.migration set name = '9998-other' where name = '0001-ledger'`);
  await eventually(async () =>
    expect((await gateway.get('/x402/ready')).json).toMatchObject({
      status: 'not_ready',
      migrations: { ok: false, detail: 'pending: 0001-ledger' },
    }),
  );
});

test('while the database is unreachable the log has one line about it, each line names version and instance, and probes are not logged', async () => {
  const database = await createDatabase();
  const file = join(temporaryFolder(), 'gateway.log');
  const gateway = await startTestGateway({ database, chain, logger: createLogger('info', file) });
  await eventually(async () => expect(await isReady(gateway)).toBe(true));
  const ids = {
    'x-request-id': 'a-proxy/7',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  };
  const asked = await gateway.get('/x402/stats', ids);
  await gateway.get('/x402/stats', { 'x-request-id': 'a b', traceparent: `00-${'0'.repeat(32)}-1-01` });
  await database.away(true);
  await eventually(async () => expect(await isReady(gateway)).toBe(false));
  const refused = await gateway.get('/x402/stats');
  expect(refused).toMatchObject({ status: 503, json: { code: 'ledger_unavailable' } });
  for (let count = 0; count < 3; count++) await gateway.get('/x402/stats');
  await database.away(false);
  await gateway.stop();
  // a line waits for others for some milliseconds before it is written
  const { text, lines, requests } = await eventually(() => {
    const written = readFileSync(file, 'utf8');
    const parsed = written
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const asking = parsed.filter(({ msg }) => msg === 'request');
    expect(asking.map(({ path }) => path)).toEqual(Array.from({ length: 6 }, () => '/x402/stats'));
    return { text: written, lines: parsed, requests: asking };
  });
  expect(lines.filter(({ msg }) => String(msg).startsWith('the database cannot be used'))).toMatchObject([
    { level: expect.stringMatching(/warn|error/), cause: expect.any(String) },
  ]);
  expect(text).not.toContain('"stack"');
  expect(new Set(lines.map(({ instance }) => instance)).size).toBe(1);
  expect(lines.every(({ version }) => version === programVersion())).toBe(true);
  expect(requests[0]).toMatchObject({
    level: 'info',
    request_id: asked.headers.get('x-request-id'),
    client_request_id: 'a-proxy/7',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    parent_id: '00f067aa0ba902b7',
  });
  expect(requests[1]).not.toHaveProperty('client_request_id');
  expect(requests[1]).not.toHaveProperty('trace_id');
  expect(requests[2]).toMatchObject({ status: 503, code: 'ledger_unavailable', reason: expect.any(String) });
});

test('a job whose policy says so is refused before payment while its runner takes nothing, and sold again once it does', async () => {
  const database = await createDatabase();
  const jobs = [0, 1].map(
    (index) => `
[[job_policies]]
service_id = 1
job_index = ${index}
invocation_mode = "public_paid"
${index === 0 ? 'max_runner_silence_secs = 300' : ''}`,
  );
  const options = {
    database,
    chain,
    jobs: `[job_prices.1]\n0 = "1"\n1 = "1"\n${jobs.join('')}`,
    tables: leased,
    env: { RUNNER_TOKEN: token },
  };
  const before = await startTestGateway(options);
  const payment = await quoteAndSign(before, '/x402/jobs/1/0', 'y');
  await payFor(before, '/x402/jobs/1/0', 'x');
  await age(database, 3_600);
  const gateway = await startTestGateway(options);
  const refused = { status: 503, json: { code: 'runner_unavailable' } };
  await eventually(async () =>
    expect(await gateway.post('/x402/jobs/1/0', { body: 'x' })).toMatchObject(refused),
  );
  const paid = { body: 'y', headers: header(payment) };
  expect(await gateway.post('/x402/jobs/1/0', paid)).toMatchObject(refused);
  expect((await gateway.post('/x402/jobs/1/1', { body: 'x' })).status).toBe(402);
  const headers = { ...json, authorization: `Bearer ${token}` };
  await gateway.post('/runner/leases', { body: '{"max":1,"lease_secs":60}', headers });
  await eventually(async () => expect((await gateway.post('/x402/jobs/1/0', paid)).status).toBe(202));
});

const sold = (service: number): string => `
[job_prices.${service}]
0 = "1000000000000000"
[[job_policies]]
service_id = ${service}
job_index = 0
invocation_mode = "public_paid"
`;

test('a job that no runner serves is refused before payment, and charges nothing; one of a service with a runner is sold', async () => {
  const database = await createDatabase();
  const options = { database, chain, jobs: sold(1) + sold(2), env: { RUNNER_TOKEN: token } };
  const served = await startTestGateway(options);
  const payment = await quoteAndSign(served, '/x402/jobs/2/0', 'x');
  await served.stop();
  const gateway = await startTestGateway({ ...options, tables: leased });
  const refused = { status: 503, json: { code: 'runner_unavailable' } };
  const before = await chain.balance(payTo);
  expect(await gateway.post('/x402/jobs/2/0', { body: 'x' })).toMatchObject(refused);
  expect(await gateway.post('/x402/jobs/2/0', { body: 'x', headers: header(payment) })).toMatchObject(
    refused,
  );
  expect(await chain.balance(payTo)).toBe(before);
  expect((await payFor(gateway, '/x402/jobs/1/0', 'x')).status).toBe(202);
});

const head = (oldestCallId: number, isLeased = false) => [
  { serviceId: 1, calls: 9, oldestCallId, oldestMs: 400_000, isLeased },
];

test('a runner is silent while the same call stays the oldest and none is leased', () => {
  let nowMs = 1_000_000;
  const silence = createRunnerSilence(() => nowMs);
  const after = (secs: number, waiting: ReturnType<typeof head>): number => {
    nowMs += secs * 1_000;
    silence.observe(waiting);
    return silence.secsOf(1);
  };
  expect(silence.secsOf(1)).toBe(0);
  // a process that starts
  expect(after(0, head(1))).toBe(400);
  expect(after(5, head(1))).toBe(405);
  // a long queue of a runner that works
  expect(after(5, head(2))).toBe(0);
  expect(after(5, head(2))).toBe(5);
  expect(after(5, head(2, true))).toBe(0);
  expect(after(5, [])).toBe(0);
});
