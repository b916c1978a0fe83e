import { completeCall, failCall, leaseOne } from '../../support/leases.ts';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { pino } from 'pino';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import {
  collectCallbacks,
  eraseCallbacks,
  putCallback,
  takeCallbacks,
} from '../../../src/calls/store/callbacks.ts';
import { pruneRows } from '../../../src/ledger/store/pruning.ts';
import { laneOn } from '../../support/credit.ts';
import { readDueCallbacks } from '../../../src/ledger/store/backlogs.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, payer, quoteAndSign } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';
import { allowed, callbackOf, callTo, job, payAndCall, startReceiver } from './callbacks-support.ts';
import { leased, otherToken, starter } from './large-results-support.ts';

const chain = useChain();
const start = starter(chain);

test('a client is called at its URL once its paid call is completed, signed with the secret of its answer', async () => {
  const database = await createDatabase();
  const lines: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line) => void lines.push(line) });
  const options = { database, chain, tables: allowed, logger, env: { OTHER_TOKEN: 'x'.repeat(32) } };
  const gateway = await startTestGateway({
    ...options,
    change: (text) => text.replace('"silent"', '"debug"'),
  });
  const receiver = await startReceiver();
  const called = await payAndCall(gateway, `${receiver.url}/hooks?token=of-the-client`);
  expect(await callbackOf(gateway, called)).toEqual({ state: 'waiting', tries: 0, secret: called.secret });
  const lease = await leaseOne(gateway);
  expect(receiver.received).toEqual([]);
  await completeCall(gateway, lease);
  await eventually(async () =>
    expect(await callbackOf(gateway, called)).toMatchObject({ state: 'delivered', tries: 1 }),
  );
  const [callback] = receiver.received;
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const completed = events.find(({ type }) => type === 'completed');
  expect(callback?.path).toBe('/hooks?token=of-the-client');
  expect(
    new Webhook(called.secret).verify(callback?.text ?? '', callback?.headers as Record<string, string>),
  ).toEqual({
    type: 'payment.completed',
    timestamp: completed?.at,
    data: {
      seq: completed?.seq,
      quote_digest: called.digest,
      receipt_url: `${gateway.url}${called.path}`,
      service_id: 1,
      job_index: 0,
      call_id: lease.call_id,
      ...(completed?.type === 'completed' && {
        result_sha256: completed.data.result_sha256,
        result_bytes: completed.data.result_bytes,
      }),
    },
  });
  expect((await gateway.get(called.path)).json).not.toHaveProperty('callback');
  // neither the URL nor the secret is in the ledger or in a log
  const written = JSON.stringify(events) + lines.join('');
  expect(written).toContain(called.digest);
  for (const secret of ['of-the-client', called.secret, new URL(receiver.url).port])
    expect(written.includes(secret) && secret).toBe(false);
  expect(receiver.received).toHaveLength(1);
});

test.each([
  // what else is no address of a customer is in test/base/peers/http/public-address.test.ts
  ['', 'invalid_callback_url', ['https://10.0.0.7/', 'https://a.example/, https://b.example/']],
  [
    'allowed_hosts = ["hooks.example", "*.hooks.example"]',
    'callback_not_allowed',
    ['https://nohooks.example/'],
  ],
  ['off', 'callback_not_allowed', ['https://hooks.example/']],
])('a URL that may not be called is refused before money moves: %s %s', async (rules, code, urls) => {
  const database = await createDatabase();
  const tables = rules === 'off' ? leased : `${allowed}${rules}\n`;
  const gateway = await start(database, tables);
  const payment = await quoteAndSign(gateway, job, 'a body');
  for (const url of urls)
    for (const paying of [{}, header(payment)]) {
      const { status, json } = await gateway.post(job, {
        body: 'a body',
        headers: { ...paying, ...callTo(url) },
      });
      expect([url, status, json.code]).toEqual([url, code === 'callback_not_allowed' ? 403 : 400, code]);
      expect(json.error).toContain('This request charged nothing');
    }
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type.startsWith('settlement'))).toEqual([]);
  expect((await database.pool.query('select from tollbook.callback')).rowCount).toBe(0);
  // the same payment without it is taken
  expect((await gateway.post(job, { body: 'a body', headers: header(payment) })).status).toBe(202);
});

test('a host that the list names, or one below it, is allowed', async () => {
  const database = await createDatabase();
  const gateway = await start(database, `${allowed}allowed_hosts = ["hooks.example", "*.hooks.example"]\n`);
  for (const url of ['https://hooks.example/', 'https://eu.hooks.example:8443/x'])
    expect((await payAndCall(gateway, url, `for ${url}`)).secret).toMatch(/^whsec_/);
});

test('a payment that is sent again with another callback, or with none, is refused, and the first URL alone is called', async () => {
  const database = await createDatabase();
  const gateway = await start(database, allowed);
  const receiver = await startReceiver();
  const other = await startReceiver();
  const called = await payAndCall(gateway, receiver.url);
  const again = async (more: Record<string, string>) => {
    const { status, json } = await gateway.post(job, {
      body: 'a body',
      headers: { ...header(called.payment), ...more },
    });
    return [status, json.code ?? json.callback_secret];
  };
  expect(await again(callTo(other.url))).toEqual([409, 'payment_replay']);
  expect(await again({})).toEqual([409, 'payment_replay']);
  expect(await again(callTo(receiver.url))).toEqual([202, called.secret]);
  await completeCall(gateway, await leaseOne(gateway));
  await eventually(() => expect(receiver.received).toHaveLength(1));
  expect(other.received).toEqual([]);
  expect((await database.pool.query('select from tollbook.callback')).rowCount).toBe(1);
});

test('a dead letter and its later completion are each reported, with different ids', async () => {
  const database = await createDatabase();
  const gateway = await start(database, allowed);
  const receiver = await startReceiver();
  const called = await payAndCall(gateway, receiver.url);
  const told = () => receiver.received.map(({ json }) => [json.type, json.data.reason]);
  await failCall(gateway, await leaseOne(gateway));
  await eventually(() => expect(told()).toEqual([['payment.refund_due', 'dead_lettered']]));
  const context = { ...database, lane: laneOn(database), onCallReleased: () => {} };
  await requeueCall(context, receiver.received[0]?.json.data.call_id, undefined);
  await completeCall(gateway, await leaseOne(gateway));
  await eventually(() =>
    expect(told()).toEqual([
      ['payment.refund_due', 'dead_lettered'],
      ['payment.completed', undefined],
    ]),
  );
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect(new Set(ids).size).toBe(2);
  await eventually(async () => expect((await callbackOf(gateway, called)).state).toBe('delivered'));
});

test('a receiver that never answers holds up neither deliveries nor the callbacks of others', async () => {
  const database = await createDatabase();
  const gateway = await start(database, allowed);
  const silent = await startReceiver(() => {});
  const receiver = await startReceiver();
  // each is waited for ten seconds: one after another they would take longer than the test
  for (let n = 0; n < 6; n++) await payAndCall(gateway, silent.url, `silent ${n}`);
  for (let n = 0; n < 6; n++) await completeCall(gateway, await leaseOne(gateway));
  await eventually(() => expect(silent.received.length).toBeGreaterThanOrEqual(6));
  await payAndCall(gateway, receiver.url);
  await completeCall(gateway, await leaseOne(gateway));
  await eventually(() => expect(receiver.received).toHaveLength(1));
});

const sent = (outcome: string): string =>
  `tollbook_peer_request_duration_seconds_count{peer="client",operation="call_back",outcome="${outcome}"}`;

test('the metrics say what became of each callback that was sent, how many wait to be sent, and for how long', async () => {
  const database = await createDatabase();
  const bearer = 'a-token-of-the-metrics-with-32-letters';
  const gateway = await startTestGateway({
    database,
    chain,
    tables: `${allowed}[metrics]\ntoken = "env:METRICS_TOKEN"\n`,
    env: { OTHER_TOKEN: otherToken, METRICS_TOKEN: bearer },
  });
  const values = async (...series: readonly string[]): Promise<(number | undefined)[]> => {
    const { text } = await gateway.get('/metrics', { authorization: `Bearer ${bearer}` });
    const lines = new Map(text.split('\n').map((line) => line.split(/ (?=[^ ]*$)/) as [string, string]));
    return series.map((one) => (lines.has(one) ? Number(lines.get(one)) : undefined));
  };
  const receiver = await startReceiver();
  const refusing = await startReceiver((response) => void response.writeHead(500).end());
  const gone = await startReceiver((response) => void response.writeHead(410).end());
  for (const [nth, { url }] of [receiver, refusing, gone].entries())
    await payAndCall(gateway, url, `call ${nth}`);
  for (let nth = 0; nth < 3; nth++) await completeCall(gateway, await leaseOne(gateway));
  await eventually(async () =>
    expect(await values(sent('delivered'), sent('failed'), sent('given_up'))).toEqual([1, 1, 1]),
  );
  // what the gauges are, which are read every five seconds
  const due = await readDueCallbacks(database.pool);
  expect(due.count).toBe(1);
  expect(due.oldestMs).toBeGreaterThan(0);
});

test('a redirect is not followed, and what a receiver refuses is sent again with one id until it is given up', async () => {
  const database = await createDatabase();
  const gateway = await start(database, allowed, undefined, { callbacks: { giveUpAfterSecs: 60 } });
  const inner = await startReceiver();
  const receiver = await startReceiver(
    (response) => void response.writeHead(307, { location: `${inner.url}/private` }).end(),
  );
  const called = await payAndCall(gateway, receiver.url);
  await completeCall(gateway, await leaseOne(gateway));
  await eventually(async () =>
    expect(await callbackOf(gateway, called)).toMatchObject({
      state: 'due',
      tries: 1,
      last_failure: 'status_307',
    }),
  );
  await database.moveClock(10);
  await eventually(() => expect(receiver.received).toHaveLength(2));
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await eventually(async () => expect((await callbackOf(gateway, called)).tries).toBe(2));
  await database.moveClock(100);
  await eventually(async () =>
    expect(await callbackOf(gateway, called)).toMatchObject({
      state: 'given_up',
      tries: 3,
      last_failure: 'status_307',
    }),
  );
  await database.moveClock(10_000);
  expect(inner.received).toEqual([]);
  expect(receiver.received).toHaveLength(3);
});

test('a receiver that says it is gone gets nothing more', async () => {
  const database = await createDatabase();
  const gateway = await start(database, allowed);
  const receiver = await startReceiver((response) => void response.writeHead(410).end());
  const called = await payAndCall(gateway, receiver.url);
  await completeCall(gateway, await leaseOne(gateway));
  await eventually(async () =>
    expect(await callbackOf(gateway, called)).toMatchObject({
      state: 'given_up',
      tries: 1,
      last_failure: 'status_410',
    }),
  );
});

test('a call that a process completed before it was killed is told by another one; what it had taken is due again after a minute', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const receiver = await startReceiver();
  const first = await start(database, allowed);
  const called = await payAndCall(first, receiver.url);
  const lease = await leaseOne(first);
  await first.stop();
  const context = { ...database, lane: laneOn(database) };
  await context.lane.append({
    stream: called.digest,
    events: [{ type: 'completed', data: { call_id: lease.call_id, attempt: 1 } }],
    call: { op: 'complete', callId: lease.call_id, leaseId: lease.lease_id },
  });
  expect(await collectCallbacks(pool, 1_000)).toBeGreaterThan(0);
  expect(await takeCallbacks(pool, 10)).toMatchObject([{ stream: called.digest, tries: 1 }]);
  expect(await takeCallbacks(pool, 10)).toEqual([]);
  await database.moveClock(59);
  expect(await takeCallbacks(pool, 10)).toEqual([]);
  await database.moveClock(61);
  const second = await start(database, allowed);
  await eventually(() => expect(receiver.received).toHaveLength(1));
  await eventually(async () =>
    expect(await callbackOf(second, called)).toMatchObject({ state: 'delivered', tries: 2 }),
  );
});

test('the callbacks of an erased payer are deleted, and any other once its life has ended and it has nothing to send', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const gateway = await start(database, allowed);
  const receiver = await startReceiver();
  const called = await payAndCall(gateway, receiver.url);
  const rows = async () => (await pool.query('select from tollbook.callback')).rowCount;
  await eventually(async () => expect((await pool.query('select from tollbook.payment')).rowCount).toBe(1));
  expect(await eraseCallbacks(pool, [`0x${'7'.repeat(40)}`], 10)).toBe(0);
  expect(await eraseCallbacks(pool, [payer.address.toLowerCase()], 10)).toBe(1);
  expect(await rows()).toBe(0);
  await completeCall(gateway, await leaseOne(gateway));
  expect((await gateway.get(called.path, called.bearer)).json).not.toHaveProperty('callback');
  expect(receiver.received).toEqual([]);
  // its own worker would delete the row first
  await gateway.stop();
  await putCallback(
    pool,
    { stream: called.digest, binding: `0x${'1'.repeat(64)}` },
    'https://hooks.example/',
    payer.address.toLowerCase(),
  );
  await database.moveClock(29 * 86_400);
  expect(await pruneRows(pool, 'callbacks', 30 * 86_400, 10)).toBe(0);
  await database.moveClock(31 * 86_400);
  expect(await pruneRows(pool, 'callbacks', 30 * 86_400, 10)).toBe(1);
});
