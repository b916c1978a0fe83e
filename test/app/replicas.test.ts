import { expect, onTestFinished, test } from 'vitest';
import { pause } from '../../src/base/runtime/pause.ts';
import { browserOf, signInOperator } from '../support/console.ts';
import type { TestDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { echo, startJobsSite } from '../support/jobs-site.ts';
import { completeCall, leaseOne, leasingRunner, paid } from '../support/leases.ts';
import { operatorOf } from '../support/operator.ts';
import { payFor } from '../support/payer.ts';
import { startReplicated, type TestServer } from '../support/replica.ts';
import { startTestRunner } from '../support/runner.ts';
import { formsIn, sendForm } from '../support/site.ts';
import { eventually } from '../support/wait.ts';

const chain = useChain();
const metricsToken = 'a-token-that-reads-the-metrics-of-a-test';

type Headers = Record<string, string>;

const asOf = ({ headers }: { readonly headers: { get(name: string): string | null } }): number =>
  Number(headers.get('tollbook-as-of') ?? 'NaN');

/** The replica as `/status` has it. */
async function statusOf(gateway: TestGateway, operator: Headers) {
  const { json } = await gateway.get('/status', operator);
  const [server] = Object.values(json.replicas.servers as Record<string, { ok: boolean; behind_ms: number }>);
  return { status: json.replicas.status as string, server };
}

function isUsed(gateway: TestGateway, operator: Headers): Promise<void> {
  return eventually(async () =>
    expect(await statusOf(gateway, operator)).toMatchObject({ status: 'ok', server: { ok: true } }),
  );
}

/** Resolves once it is in force: a transaction that has committed since then is not there yet. */
async function setDelay({ pool }: TestDatabase, replica: TestServer, delay: string): Promise<void> {
  await replica.ask(`alter system set recovery_min_apply_delay = '${delay}'`);
  await replica.ask('select pg_reload_conf()');
  await eventually(async () => {
    await pool.query('select pg_current_xact_id()');
    const { rows } = await pool.query<{ lsn: string }>('select pg_current_wal_insert_lsn()::text as lsn');
    await pause(200);
    const isBehind = `pg_last_wal_replay_lsn() < '${rows[0]?.lsn}'`;
    expect(await replica.ask(`select ${isBehind} as behind`)).toMatchObject([{ behind: true }]);
  });
}

test('with a replica 30 s behind no client sees its own payment go back in time, whichever gateway answers, and what is older says of which event it is', async () => {
  const { replicas, database } = await startReplicated();
  const [replica] = replicas as [TestServer];
  const start = () =>
    startTestGateway({
      database,
      chain,
      isDocumented: true,
      tables: leasingRunner,
      replicaUrls: [replica.url],
    });
  const [one, other] = [await start(), await start()];
  const operator = await operatorOf(database, ['status:read', 'audit:read']);
  await isUsed(one, operator);
  await isUsed(other, operator);
  // a healthy replica answers receipts
  const early = await paid(one);
  const fresh = await other.get(early.path, early.bearer);
  expect([fresh.status, fresh.json.state]).toEqual([200, 'enqueued']);
  await setDelay(database, replica, '30s');

  const { path, bearer } = await paid(one);
  let isOver = false;
  const seen: { readonly status: number; readonly events: number }[] = [];
  const watching = (async () => {
    for (let turn = 0; !isOver; turn++) {
      const { status, json } = await (turn % 2 === 0 ? one : other).get(path, bearer);
      seen.push({ status, events: json.events?.length ?? 0 });
    }
  })();
  const watched = (more: number): Promise<void> => {
    const from = seen.length;
    return eventually(() => expect(seen.length).toBeGreaterThan(from + more));
  };
  await watched(2);
  await leaseOne(one);
  const call = await leaseOne(other);
  await watched(2);
  await completeCall(one, call);
  const completed = await other.get(path, bearer);
  expect([completed.json.state, completed.json.result.content_type]).toEqual(['completed', 'text/plain']);
  expect(asOf(completed)).toBeGreaterThan(0);
  await watched(2);
  isOver = true;
  await watching;
  expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([200]));
  const events = seen.map((receipt) => receipt.events);
  expect(events).toEqual(events.toSorted((a, b) => a - b));

  const stats = await other.get('/x402/stats');
  expect(stats.json).toMatchObject({ counters: { completed: 0 } });
  expect(asOf(stats)).toBeLessThan(asOf(completed));
  expect(Date.parse(stats.headers.get('tollbook-as-of-time') ?? '')).toBeLessThan(Date.now());
  const history = await other.get(`/audit/payments/${path.split('/').at(-1)}`, operator);
  // what the replica does not have, the primary has
  expect([history.status, history.json.state]).toEqual([200, 'completed']);
  const listed = await one.get('/audit/payments?limit=10', operator);
  expect(listed.status).toBe(200);
  expect(asOf(listed)).toBeLessThan(asOf(completed));
});

test('a page of the console that a replica shows says how old it is, and an operator sees what they did', async () => {
  const { replicas, database } = await startReplicated();
  const [replica] = replicas as [TestServer];
  // long ago: a page is not older than what was done at the console shortly before
  await database.moveClock(-600);
  const ada = await signInOperator({ database }, { role: 'operator' });
  await database.moveClock(0);
  const site = await startJobsSite(chain, echo, {
    database,
    tables: '[console]\n',
    replicaUrls: [replica.url],
  });
  const operator = await operatorOf(database, ['status:read']);
  await isUsed(site, operator);
  const browser = browserOf(site, ada);
  const path = '/console/calls';
  await replica.ask('select pg_wal_replay_pause()');
  await payFor(site, '/x402/jobs/1/1');
  await eventually(async () =>
    expect((await statusOf(site, operator)).server?.behind_ms).toBeGreaterThan(2_000),
  );
  const older = await browser.get(path);
  expect(older.text).toMatch(/This page shows the ledger up to event/);
  expect(asOf(older)).toBeGreaterThan(0);
  const pausing = formsIn(older.text).find(({ action }) => action.endsWith('/pause'));
  await sendForm(browser, path, {}, { action: pausing?.action ?? '' });
  const after = await browser.get(path);
  expect(after.text).not.toMatch(/This page shows the ledger up to event/);
  expect(after.text).toMatch(/paused/i);
});

test('a replica that is down causes an alert and no error, and is resolved once it answers again', async () => {
  const { replicas, database } = await startReplicated();
  const [replica] = replicas as [TestServer];
  const webhook = await startTestRunner(() => ({ status: 204 }));
  const gateway = await startTestGateway({
    database,
    chain,
    tables: `${leasingRunner}[alerts]\nwebhook = "${webhook.url}"\n[metrics]\ntoken = "env:METRICS_TOKEN"\n`,
    env: { METRICS_TOKEN: metricsToken },
    replicaUrls: [replica.url],
  });
  onTestFinished(async () => void (await gateway.stop()));
  const operator = await operatorOf(database, ['status:read']);
  await isUsed(gateway, operator);
  const { path, bearer } = await paid(gateway);
  const reads = async (): Promise<void> => {
    const answers = await Promise.all([gateway.get(path, bearer), gateway.get('/x402/stats')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  };
  await reads();
  const metrics = async (): Promise<string> =>
    (await gateway.get('/metrics', { authorization: `Bearer ${metricsToken}` })).text;
  const answered = async (): Promise<number> =>
    Number(/tollbook_replica_reads_total\{[^}]*outcome="answered"\} (\d+)/.exec(await metrics())?.[1]);
  // receipts are among what it answers
  const before = await answered();
  await eventually(async () => {
    await gateway.get(path, bearer);
    expect(await answered()).toBeGreaterThan(before);
  });
  const told = (status: string): boolean =>
    webhook.deliveries.some(({ body }) => {
      const alert = JSON.parse(String(body));
      return alert.type === 'replica_unused' && alert.status === status;
    });
  await replica.stop();
  await eventually(async () => {
    await reads();
    expect(told('firing')).toBe(true);
  });
  const { status, server } = await statusOf(gateway, operator);
  expect([status, server]).toMatchObject(['degraded', { ok: false, detail: /cannot be reached/ }]);
  expect(await metrics()).toMatch(/tollbook_replica_used\{replica="[^"]+"\} 0/);
  await replica.start();
  await eventually(() => expect(told('resolved')).toBe(true));
  await reads();
});
