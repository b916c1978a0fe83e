import { asRunner, leaseOne, paid, type Paid } from '../../support/leases.ts';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { createProgressDesk } from '../../../src/calls/use-cases/progress.ts';
import { createRunner, job as runnerJob, type PaidCall } from '../../../src/runner/index.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { runnerSecret, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';
import { startTestRunner } from '../../support/runner.ts';
import { leased, otherToken, starter } from './large-results-support.ts';

const chain = useChain();
const start = starter(chain);

interface Followed {
  /** All that has come so far. */
  readonly text: () => string;
  readonly ended: Promise<void>;
}

function follow(gateway: TestGateway, { path, bearer }: Paid, token = true): Followed {
  let text = '';
  const read = async (): Promise<void> => {
    const headers = { accept: 'text/event-stream', ...(token ? bearer : {}) };
    const response = await fetch(gateway.url + path, { headers });
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) text += decoder.decode(piece, { stream: true });
  };
  return { text: () => text, ended: read() };
}

test('a client that has paid sees the handler’s progress on the event stream, and others do not', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const finish = Promise.withResolvers<string>();
  let call: PaidCall | undefined;
  const handler = (given: PaidCall): Promise<string> => {
    call = given;
    given.progress({ fraction: 0.25, message: 'page 1 of 4' });
    return finish.promise;
  };
  const runner = createRunner({ jobs: [runnerJob({ serviceId: 1, jobIndex: 0, on: { x402: handler } })] });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  const to = await paid(gateway);
  const payer = follow(gateway, to);
  const stranger = follow(gateway, to, false);
  void runner.poll({ gatewayUrl: gateway.url, token: runnerSecret });
  await eventually(() => expect(payer.text()).toContain('"message":"page 1 of 4"'));
  call?.progress({ fraction: 0.5 });
  await eventually(() =>
    expect(payer.text()).toMatch(/event: progress\ndata: \{"fraction":0\.5,"at":"[^"]+"\}/),
  );
  const running = (await gateway.get(to.path, to.bearer)).json;
  expect(running).toMatchObject({ state: 'delivered', progress: { fraction: 0.5 } });
  expect((await gateway.get(to.path)).json).not.toHaveProperty('progress');
  finish.resolve('done');
  await payer.ended;
  await stranger.ended;
  expect(payer.text()).toContain('event: final');
  expect(stranger.text()).toContain('event: final');
  expect(stranger.text()).not.toContain('progress');
  expect((await gateway.get(to.path, to.bearer)).json).not.toHaveProperty('progress');
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('progress under a lease that is lost, of another token or malformed is refused and not shown', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const to = await paid(gateway);
  const lost = await leaseOne(gateway);
  const say = (lease_id: string, more: object, bearer?: string) =>
    asRunner(gateway, `/runner/calls/${lost.call_id}/progress`, { lease_id, ...more }, bearer);
  const good = { fraction: 0.1, message: 'begun' };
  expect((await say(lost.lease_id, good, 'another')).status).toBe(401);
  for (const bad of [{ fraction: 1.5 }, { message: 'a\nb' }, { message: 'x'.repeat(201) }, { more: 1 }])
    expect((await say(lost.lease_id, bad)).status).toBe(400);
  expect((await gateway.get(to.path, to.bearer)).json).not.toHaveProperty('progress');
  expect((await say(lost.lease_id, good)).json).toEqual({ status: 'reported' });
  expect((await gateway.get(to.path, to.bearer)).json.progress).toMatchObject(good);
  await database.moveClock(120);
  const lease = await leaseOne(gateway);
  // what the holder of the former lease said is not said by this one
  expect((await gateway.get(to.path, to.bearer)).json).not.toHaveProperty('progress');
  await eventually(async () => expect((await say(lost.lease_id, good)).json.code).toBe('lease_lost'));
  expect((await say(lease.lease_id, { fraction: 0.9 })).status).toBe(200);
  expect((await gateway.get(to.path, to.bearer)).json.progress).toMatchObject({ fraction: 0.9 });
});

test('a runner reports no progress of a call of another runner, also if it knows the lease', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const to = await paid(gateway);
  const { call_id: callId, lease_id: leaseId } = await leaseOne(gateway);
  const report = (services: readonly number[]) =>
    createProgressDesk().report(
      database,
      { name: 'one', tokens: ['a-token'], services },
      { callId, leaseId },
      {
        fraction: 0.5,
        message: undefined,
      },
    );
  expect(await report([2])).toEqual({ kind: 'lease_lost' });
  expect((await gateway.get(to.path, to.bearer)).json).not.toHaveProperty('progress');
  expect(await report([1])).toEqual({ kind: 'reported' });
});

test("a runner that knows the id of another's lease cannot suppress its progress", async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const to = await paid(gateway);
  const { call_id, lease_id } = await leaseOne(gateway);
  const say = (bearer?: string) =>
    asRunner(gateway, `/runner/calls/${call_id}/progress`, { lease_id, fraction: 0.5 }, bearer);
  expect((await say(otherToken)).json).toMatchObject({ code: 'lease_lost' });
  expect((await say()).json).toEqual({ status: 'reported' });
  expect((await gateway.get(to.path, to.bearer)).json.progress).toMatchObject({ fraction: 0.5 });
});

test('progress that comes too often is passed over without the database', async () => {
  const database = await createDatabase();
  let nowMs = 1_000_000;
  let queries = 0;
  const pool = new Proxy(database.pool, {
    get(target, name) {
      if (name === 'query') queries++;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const desk = createProgressDesk(() => nowMs);
  const lease = { callId: 1, leaseId: '00000000-0000-4000-8000-000000000000' };
  const report = () =>
    desk.report({ pool }, { name: 'one', tokens: ['a-token'], services: [1] }, lease, {
      fraction: 0.5,
      message: undefined,
    });
  expect(await report()).toEqual({ kind: 'lease_lost' });
  for (let more = 0; more < 100; more++) expect(await report()).toEqual({ kind: 'skipped' });
  expect(queries).toBe(1);
  nowMs += 500;
  expect(await report()).toEqual({ kind: 'lease_lost' });
  expect(queries).toBe(2);
});

test('a client that has paid for a pushed call sees its handler’s progress', async () => {
  const database = await createDatabase();
  const finish = Promise.withResolvers<string>();
  const handler = (call: PaidCall): Promise<string> => {
    call.progress({ fraction: 0.25, message: 'page 1 of 4' });
    return finish.promise;
  };
  const runner = createRunner({ jobs: [runnerJob({ serviceId: 1, jobIndex: 0, on: { x402: handler } })] });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  const gateway = await start(database, '', (await runner.listen({ secret: runnerSecret })).url);
  const to = await paid(gateway);
  const payer = follow(gateway, to);
  await eventually(() => expect(payer.text()).toContain('"message":"page 1 of 4"'));
  finish.resolve('done');
  await payer.ended;
  expect((await gateway.get(to.path, to.bearer)).json).toMatchObject({ state: 'completed' });
  expect((await gateway.get(to.path, to.bearer)).json).not.toHaveProperty('progress');
});

test('a pushed runner proves one lease with the token of its call, and never sends its own token', async () => {
  const database = await createDatabase();
  const finish = Promise.withResolvers<string>();
  const handler = (call: PaidCall): Promise<string> => {
    call.progress({ fraction: 0.5 });
    return finish.promise;
  };
  const runner = createRunner({ jobs: [runnerJob({ serviceId: 1, jobIndex: 0, on: { x402: handler } })] });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  // stands at the address that clients use
  const seen = await startTestRunner(() => ({ status: 200, body: '{}' }));
  const gateway = await startTestGateway({
    database,
    chain,
    bind: `127.0.0.1:${await freePort()}`,
    top: `public_url = "${new URL(seen.url).origin}"`,
    runnerUrl: (await runner.listen({ secret: runnerSecret })).url,
  });
  const to = await paid(gateway);
  await eventually(() => expect(seen.deliveries).toHaveLength(1));
  const [said] = seen.deliveries;
  const path = said?.path ?? '';
  const body = JSON.parse(String(said?.body));
  const token = /^Bearer (.+)$/.exec(said?.headers.authorization ?? '')?.[1] ?? '';
  expect(body).toEqual({ lease_id: expect.any(String), fraction: 0.5 });
  expect(JSON.stringify(said?.headers)).not.toContain(runnerSecret);
  expect(token).toMatch(/^[\w-]{43}$/);
  const say = async (at: string, sent: object, bearer: string) =>
    (await asRunner(gateway, at, sent, bearer)).status;
  const other = '00000000-0000-4000-8000-000000000000';
  expect(await say(path, { ...body, lease_id: other }, token)).toBe(401);
  expect(await say('/runner/calls/7777/progress', body, token)).toBe(401);
  // a runner that is pushed to has nothing to lease
  expect(await say(path, body, runnerSecret)).toBe(401);
  const callId = path.split('/')[3];
  const lease = { lease_id: body.lease_id };
  expect(await say(`/runner/calls/${callId}/complete`, lease, token)).toBe(401);
  expect(await say(`/runner/calls/${callId}/extend`, { ...lease, lease_secs: 60 }, token)).toBe(401);
  expect(await say(path, { ...body, message: 'half' }, token)).toBe(200);
  expect((await gateway.get(to.path, to.bearer)).json.progress).toMatchObject({ message: 'half' });
  finish.resolve('done');
  await eventually(async () => expect((await gateway.get(to.path, to.bearer)).json.state).toBe('completed'));
  await eventually(async () => expect(await say(path, body, token)).toBe(409));
});
