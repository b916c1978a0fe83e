import { expect, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { fillDisk } from '../../support/full-disk.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { type Reaction, startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { pay } from './relay-support.ts';

const chain = useChain();

interface Told {
  readonly type: string;
  readonly status: 'firing' | 'resolved';
  readonly subject: string;
  readonly text: string;
}

/** A gateway whose alerts go to a webhook. */
async function startAlerting(options: Partial<TestGatewayOptions> = {}) {
  const database = await createDatabase();
  const webhook = await startTestRunner(() => ({ status: 204 }));
  const { tables = '', ...others } = options;
  const start = (): Promise<TestGateway> =>
    startTestGateway({
      database,
      chain,
      tables: `[alerts]\nwebhook = "${webhook.url}"\n${tables}`,
      ...others,
    });
  const told = (kind: string): Told[] =>
    webhook.deliveries
      .map(({ body }) => JSON.parse(String(body)) as Told)
      .filter(({ type }) => type === kind);
  return { database, gateway: await start(), start, told };
}

async function isDegraded(database: TestDatabase, gateway: TestGateway, why: RegExp): Promise<void> {
  const { json } = await gateway.get('/status', await operatorOf(database, ['status:read']));
  expect(json.status).toBe('degraded');
  expect(JSON.stringify(json.jobs)).toMatch(why);
}

test('a facilitator and an RPC that are away cause alerts also without a payment, with /status degraded, and resolve them by what is well again, and not by a restart', async () => {
  const facilitator = await startFacilitatorProxy(chain.facilitatorUrl);
  const rpc = await startRpcProxy(chain.rpcUrl);
  const {
    database,
    gateway: first,
    start,
    told,
  } = await startAlerting({
    facilitatorUrl: facilitator.url,
    chain: { ...chain, rpcUrl: rpc.url },
  });
  await eventually(async () => expect((await first.get('/status')).json.status).toBe('ok'));
  facilitator.faults.supported = 'server_error';
  rpc.lie = () => ({ error: { code: -32_000, message: 'no' } });
  const host = new URL(facilitator.url).host;
  await eventually(() => {
    expect(told('facilitator_trouble')).toMatchObject([{ status: 'firing', subject: host }]);
    expect(told('chain_trouble')).toMatchObject([{ status: 'firing', subject: 'eip155:84532' }]);
  });
  await isDegraded(database, first, /unavailable/);
  await first.stop();
  // it knows nothing of its peers until their time limits have passed
  facilitator.faults.supported = 'hang';
  await database.moveClock(25);
  const gateway = await start();
  const seen = `select seen_at > tollbook.clock() - interval '20 seconds' as is_seen from tollbook.alert where kind in ('facilitator_trouble', 'chain_trouble')`;
  await eventually(async () =>
    expect((await database.pool.query(seen)).rows).toEqual([{ is_seen: true }, { is_seen: true }]),
  );
  for (const kind of ['facilitator_trouble', 'chain_trouble'])
    expect(told(kind)).not.toContainEqual(expect.objectContaining({ status: 'resolved' }));
  facilitator.faults.supported = 'pass';
  rpc.lie = () => undefined;
  await eventually(async () => expect((await gateway.get('/status')).json.status).toBe('ok'));
  // the alert ends when no process has reported its condition for 20 seconds
  await database.moveClock(25);
  await eventually(() => {
    expect(told('facilitator_trouble').at(-1)).toMatchObject({
      status: 'resolved',
      text: `The facilitator ${host} answers again, and settles every accepted token.`,
    });
    expect(told('chain_trouble').at(-1)).toMatchObject({
      status: 'resolved',
      text: 'The RPC of eip155:84532 answers again.',
    });
  });
});

test('paid calls that no runner takes within the time that their policy expects are told, and /status says so', async () => {
  const jobs = `
[job_prices.1]
0 = "1000000000000000"

[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
max_runner_silence_secs = 3
`;
  const { database, gateway, told } = await startAlerting({ jobs });
  await pay(gateway);
  await eventually(() =>
    expect(told('calls_waiting')).toMatchObject([{ status: 'firing', subject: 'service 1', calls: 1 }]),
  );
  await isDegraded(database, gateway, /no runner has taken a call of service 1/);
});

test('a runner that fails five times in a row causes an alert long before its first dead letter, and a call that it does ends the run', async () => {
  let answer: Reaction = { status: 500 };
  const runner = await startTestRunner(() => answer);
  const { database, gateway, told } = await startAlerting({
    runnerUrl: runner.url,
    constants: { delivery: { backoffCapMs: 200 } },
  });
  await pay(gateway);
  await eventually(() =>
    expect(told('deliveries_failing')).toMatchObject([
      { status: 'firing', subject: 'runner-1', reason: 'status_500' },
    ]),
  );
  expect(told('dead_letters')).toEqual([]);
  await isDegraded(database, gateway, /the runner runner-1 has failed \d+ times in a row/);
  answer = { status: 200 };
  await eventually(async () => expect((await gateway.get('/status')).json.status).toBe('ok'));
  await database.moveClock(25);
  await eventually(() =>
    expect(told('deliveries_failing').at(-1)).toMatchObject({
      status: 'resolved',
      text: expect.stringContaining('The runner runner-1 has done a call'),
    }),
  );
});

test('a database whose disk has no room, also for the rows of its alerts, causes an alert within seconds, which is resolved once it takes appends', async () => {
  const { database, gateway, told } = await startAlerting();
  // this process is the one that tells first
  const senders = 'select process_id from tollbook.alert_sender where process_id is not null';
  await eventually(async () => expect((await database.pool.query(senders)).rowCount).toBe(1));
  const empty = await fillDisk(database, ['event', 'alert', 'task']);
  const asked = gateway.post('/x402/jobs/1/0', { body: 'x' });
  await eventually(() =>
    expect(told('appends_refused')).toMatchObject([
      { status: 'firing', text: expect.stringContaining('its disk is full') },
    ]),
  );
  expect((await gateway.get('/status')).json.status).toBe('degraded');
  await empty();
  await asked;
  await database.moveClock(60);
  await eventually(() =>
    expect(told('appends_refused').at(-1)).toMatchObject({
      status: 'resolved',
      text: 'The database takes appends again.',
    }),
  );
});
