import pg from 'pg';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import { pauseRunner, resumeRunner } from '../../../src/calls/use-cases/pause-runner.ts';
import type { AlertMessage } from '../../../src/base/peers/alerts/message.ts';
import { reportAlerts, takeAlertMessages } from '../../../src/ledger/store/alerts.ts';
import { endMessage } from '../../../src/ledger/store/tasks.ts';
import { startAlertReporter } from '../../../src/jobs/workers/alert-reporter.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { type Delivery, startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { operatorOf, pay, reachesState } from './relay-support.ts';

const chain = useChain();
const [one, other] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
const condition = { kind: 'runner_paused', subject: 'echo', text: 'It is paused.' } as const;

function reporterOf({ pool }: TestDatabase) {
  const settings = { receivers: ['webhook', 'slack'], repeatSecs: 3_600, quietSecs: 20, isComplete: true };
  return (processId = one, conditions: readonly (typeof condition)[] = [condition], more = {}) =>
    reportAlerts(pool, { ...settings, processId, conditions, ...more });
}

const bodies = (deliveries: readonly Delivery[]) => deliveries.map(({ body }) => JSON.parse(body.toString()));

async function takeAll({ pool }: TestDatabase, receiver = 'webhook') {
  const rows = await takeAlertMessages(pool, receiver, 16);
  for (const { message_id: id } of rows) await endMessage(pool, id);
  return rows.map(({ kind, subject, status }) => `${kind} ${subject} ${status}`);
}

test('a condition that several processes report is sent once to each receiver, again after the repeat interval, and resolved once', async () => {
  const database = await createDatabase();
  const report = reporterOf(database);
  expect(await report(one)).toMatchObject({ isSender: true, changes: [{ ...condition, status: 'firing' }] });
  expect(await report(other)).toEqual({ isSender: false, changes: [] });
  for (const receiver of ['webhook', 'slack'])
    expect(await takeAll(database, receiver)).toEqual(['runner_paused echo firing']);
  await Promise.all([report(one), report(other)]);
  expect(await takeAll(database)).toEqual([]);
  await database.moveClock(3_601);
  await Promise.all([report(one), report(other)]);
  expect(await takeAll(database)).toEqual(['runner_paused echo firing']);
  // one process no longer sees it, the other one does
  await report(one, []);
  await database.moveClock(3_630);
  // a process that cannot look resolves nothing
  expect((await report(one, [], { isComplete: false })).changes).toEqual([]);
  const [first, second] = await Promise.all([report(one, []), report(other, [])]);
  expect([...first.changes, ...second.changes]).toMatchObject([
    { ...condition, status: 'resolved', text: 'The runner echo gets calls again.' },
  ]);
  expect(await takeAll(database)).toEqual(['runner_paused echo resolved']);
});

test('a receiver that does not answer is asked later and later, and gets the newest state alone', async () => {
  const database = await createDatabase();
  const report = reporterOf(database);
  await report();
  const take = () => takeAlertMessages(database.pool, 'webhook', 16);
  expect(await take()).toMatchObject([{ status: 'firing', tries: 1 }]);
  expect(await take()).toEqual([]);
  await database.moveClock(3);
  expect(await take()).toMatchObject([{ status: 'firing', tries: 2 }]);
  await database.moveClock(60);
  await report(one, []);
  expect(await take()).toMatchObject([{ status: 'resolved', tries: 1 }]);
  // after three days it is given up
  await database.moveClock(4 * 86_400);
  expect(await take()).toEqual([]);
});

test('dead letters and a paused runner reach webhook, Slack and PagerDuty once from two gateways, also while one hangs, which delays no payment', async () => {
  const database = await createDatabase();
  let isWanted = false;
  const runner = await startTestRunner(() => ({ status: isWanted ? 200 : 400, body: 'no model' }));
  const [webhook, pagerduty] = [
    await startTestRunner(() => ({ status: 204 })),
    await startTestRunner(() => ({ status: 202 })),
  ];
  const hanging = Promise.withResolvers<{ status: 200 }>();
  const slack = await startTestRunner(() => hanging.promise);
  const secret = 'a-secret-of-alerts-of-enough-length-';
  const options = {
    database,
    chain,
    runnerUrl: runner.url,
    tables: `[alerts]\nwebhook = "${webhook.url}"\nsecret = "env:ALERTS"\nslack_url = "env:SLACK"\npagerduty_key = "env:PAGER"\npagerduty_url = "${pagerduty.url}"`,
    env: { ALERTS: secret, SLACK: slack.url, PAGER: 'routing-key' },
  };
  const [gateway] = [await startTestGateway(options), await startTestGateway(options)];
  const call = await pay(gateway);
  await reachesState(call, 'dead_lettered');
  const operator = operatorOf(database);
  await pauseRunner(operator, { name: 'runner-1' }, { operator: 'ada' });
  await eventually(() => expect(webhook.deliveries).toHaveLength(2));
  const library = new Webhook(Buffer.from(secret), { format: 'raw' });
  for (const { body, headers } of webhook.deliveries) library.verify(body, headers as Record<string, string>);
  expect(bodies(webhook.deliveries)).toMatchObject([
    {
      type: 'dead_letters',
      status: 'firing',
      subject: 'service 1',
      calls: 1,
      call_id: call.callId,
      reason: 'status_400',
      runner: 'runner-1',
      last_error: 'status 400: no model',
    },
    { type: 'runner_paused', status: 'firing', subject: 'runner-1' },
  ]);
  await eventually(() => expect(pagerduty.deliveries).toHaveLength(2));
  await eventually(() => expect(slack.deliveries.length).toBeGreaterThan(0));
  // paid and enqueued, although a receiver hangs
  const paid = await pay(gateway);

  isWanted = true;
  await resumeRunner(operator, { name: 'runner-1' }, { operator: 'ada' });
  expect(await requeueCall(operator, call.callId)).toEqual({ kind: 'requeued' });
  await reachesState(paid, 'completed');
  await reachesState(call, 'completed');
  await database.moveClock(25);
  // a gateway that looked before the clock moved may report once more what has ended
  await eventually(() => {
    const newest = new Map(
      bodies(pagerduty.deliveries).map(({ dedup_key: key, event_action: action }) => [key, action]),
    );
    expect(Object.fromEntries(newest)).toEqual({
      'tollbook/dead_letters/service 1': 'resolve',
      'tollbook/runner_paused/runner-1': 'resolve',
    });
  });
  hanging.resolve({ status: 200 });
});

/** Processes that report conditions, and tell the operator from memory after a tenth of a second. */
async function startReporters(count: number, state: { clockOffsetMs?: number; writesRefused?: string }) {
  const database = await createDatabase();
  const sent: AlertMessage[] = [];
  const receiver = {
    name: 'webhook',
    send: async (message: AlertMessage) => {
      sent.push(message);
      return { kind: 'delivered' } as const;
    },
    close: async () => {},
  } as const;
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on('error', () => {});
  const lane = {
    get state() {
      return { clockOffsetMs: 0, writesRefused: undefined, ...state };
    },
  };
  const start = () =>
    startAlertReporter({
      pool,
      lane,
      log: pino({ level: 'silent' }),
      receivers: [receiver],
      repeatSecs: 3_600,
      conditions: async () => [],
      awayAfter: { senderMs: 100, otherMs: 3_600_000 },
    });
  const loops = Array.from({ length: count }, start);
  onTestFinished(async () => {
    await Promise.all(loops.map((loop) => loop.stop()));
    await pool.end();
  });
  const queued = () =>
    database.pool
      .query(
        `select payload->>'kind' as kind, payload->>'status' as status from tollbook.task where kind = 'alert_message'`,
      )
      .then(({ rows }) => rows);
  return { database, loops, sent, queued };
}

test('appends that are refused while rows of alerts find room are told from memory, once, and resolved in writing', async () => {
  const state: { writesRefused?: string } = { writesRefused: '53100' };
  const { database, loops, sent, queued } = await startReporters(1, state);
  const look = async (assertion: () => Promise<void> | void): Promise<void> =>
    eventually(async () => {
      for (const loop of loops) loop.wake();
      await assertion();
    });
  await look(() => expect(sent).toMatchObject([{ kind: 'appends_refused', status: 'firing' }]));
  expect(sent[0]?.text).toContain('its disk is full');
  delete state.writesRefused;
  const rows = 'select kind from tollbook.alert where is_firing';
  await look(async () =>
    expect((await database.pool.query(rows)).rows).toEqual([{ kind: 'appends_refused' }]),
  );
  await look(async () => {
    await database.moveClock(60);
    expect(await queued()).toEqual([{ kind: 'appends_refused', status: 'resolved' }]);
  });
  expect(sent).toHaveLength(1);
});

test('an unreachable database is reported by the process that was the sender, once, and its return resolves it', async () => {
  const { database, loops, sent, queued } = await startReporters(2, { clockOffsetMs: 9_000 });
  await eventually(async () => expect(await queued()).toEqual([{ kind: 'clock_trouble', status: 'firing' }]));
  await database.away(true);
  await eventually(() => {
    for (const loop of loops) loop.wake();
    expect(sent).toMatchObject([{ kind: 'database_away', status: 'firing' }]);
  });
  await database.away(false);
  const isKnown = () =>
    database.pool.query("select is_firing from tollbook.alert where kind = 'database_away'");
  await eventually(async () => {
    for (const loop of loops) loop.wake();
    expect((await isKnown()).rows).toEqual([{ is_firing: true }]);
  });
  expect(await queued()).toHaveLength(1);
  await database.moveClock(30);
  await eventually(async () => {
    for (const loop of loops) loop.wake();
    expect(await queued()).toContainEqual({ kind: 'database_away', status: 'resolved' });
  });
  expect(sent).toHaveLength(1);
});
