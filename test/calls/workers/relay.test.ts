import { type Logger, pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { verifyCall } from '../../../src/base/values/call-signature.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { resumeRunner } from '../../../src/calls/use-cases/pause-runner.ts';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import { listDeadCalls } from '../../../src/calls/store/calls.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { runnerSecret, startTestGateway } from '../../support/gateway.ts';
import { expectSound } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { type Delivery, type Reaction, startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { operatorOf, pay, reachesState, spendEventsOf, typesOf } from '../../app/workers/relay-support.ts';

const chain = useChain();
const done: Reaction = { status: 200, body: 'done' };

/** Whether retries come is tested here, not when: so they come at once. */
const eager = { backoffCapMs: 1 };

interface GatewayChanges {
  readonly maxAttempts?: number;
  /** Of `[delivery]`. */
  readonly keys?: string;
  readonly logger?: Logger;
}

function gatewayOn(
  database: TestDatabase,
  runner: { readonly url: string },
  { keys = '', logger = pino({ level: 'silent' }), ...delivery }: GatewayChanges = {},
) {
  const tables = `[delivery]\n${keys}`;
  const constants = { delivery: { ...eager, ...delivery } };
  return startTestGateway({ database, chain, runnerUrl: runner.url, tables, constants, logger });
}

function onlyOne(deliveries: readonly Delivery[]): Delivery {
  const [delivery, ...more] = deliveries;
  if (!delivery || more.length > 0) throw new Error(`${deliveries.length} deliveries`);
  return delivery;
}

async function runnerEvents({ pool }: TestDatabase) {
  return (await readStream(pool, 'runner:runner-1')).events;
}

const carries = (text: string, { body }: Delivery): boolean => body.toString() === text;
const attemptsOf = (deliveries: readonly Delivery[]) => deliveries.map(({ attempt }) => attempt);
const callsOf = (deliveries: readonly Delivery[]) => new Set(deliveries.map(({ callId }) => callId));
const idsOf = (deliveries: readonly Delivery[]) => new Set(deliveries.map(({ id }) => id));
const countingTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test('two payments never share an idempotency key, also when the database gives a call id out again', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const gateway = await gatewayOn(database, runner);
  const first = await pay(gateway);
  await reachesState(first, 'completed');
  // as after a restore
  await database.asOwner((owner) => owner.query('alter table tollbook.call alter call_id restart with 1'));
  const second = await pay(gateway);
  await eventually(() => expect(runner.deliveries).toHaveLength(2));
  expect(second.callId).toBe(first.callId);
  expect(idsOf(runner.deliveries).size).toBe(2);
});

describe('a call that its runner accepts', () => {
  test('is completed by any 2xx, whose body and content type are the result, to the byte', async () => {
    const database = await createDatabase();
    const result = Buffer.from([0, 255, 13, 10, 128]);
    const runner = await startTestRunner(() => ({
      status: 201,
      headers: { 'content-type': 'image/x-odd; a=b' },
      body: result,
    }));
    const gateway = await gatewayOn(database, runner);
    const call = await pay(gateway, 'the body');
    const receipt = await reachesState(call, 'completed');
    expect(receipt.result).toEqual({
      content_type: 'image/x-odd; a=b',
      body_base64: result.toString('base64'),
    });
    const attempt = { call_id: call.callId, attempt: 1 };
    expect(await spendEventsOf(database, call)).toEqual([
      { type: 'delivered', data: attempt },
      { type: 'completed', data: { ...attempt, result_sha256: sha256(result), result_bytes: 5 } },
    ]);
    expect(runner.deliveries).toMatchObject([{ body: Buffer.from('the body'), path: '/calls' }]);
    await expectSound(database);
  });

  test('carries two valid signatures, one for any Standard Webhooks library', async () => {
    const runner = await startTestRunner(() => done);
    const gateway = await gatewayOn(await createDatabase(), runner);
    const call = await pay(gateway, '{"grüße":[1,2]}');
    const { headers, body } = await eventually(() => onlyOne(runner.deliveries));
    expect(
      verifyCall({ secret: runnerSecret, headers, body, nowSecs: Math.floor(Date.now() / 1_000) }),
    ).toMatchObject({
      ok: true,
      id: headers['x-net-idempotency-key'],
      metadata: { 'x-x402-quote-digest': call.digest, 'x-net-call-id': String(call.callId) },
    });
    const library = new Webhook(Buffer.from(runnerSecret), { format: 'raw' });
    expect(library.verify(body, headers as Record<string, string>)).toEqual({ grüße: [1, 2] });
  });

  test("is signed at the database's time from the first one on", async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => done);
    await pay(await startTestGateway({ database, chain }));
    await database.moveClock(86_400);
    await gatewayOn(database, runner);
    const { headers } = await eventually(() => onlyOne(runner.deliveries));
    const offByDay = Number(headers['webhook-timestamp']) - 86_400 - Date.now() / 1_000;
    expect(Math.abs(offByDay)).toBeLessThan(300);
  });
});

describe('a call that its runner does not accept', () => {
  test.each<[string, Reaction, string]>([
    ['500', { status: 500 }, 'status_500'],
    ['silence beyond the time-out', 'silence', 'timeout'],
  ])('is delivered again after %s, with the same id and a rising attempt', async (_, trouble, reason) => {
    const database = await createDatabase();
    const runner = await startTestRunner(({ attempt }) => (attempt <= 2 ? trouble : done));
    const timeoutMs = trouble === 'silence' ? 250 : 20_000;
    const gateway = await gatewayOn(database, runner, { keys: `timeout_ms = ${timeoutMs}` });
    const call = await pay(gateway);
    await reachesState(call, 'completed');

    const tries = runner.deliveries.length;
    expect(tries).toBeGreaterThanOrEqual(3);
    expect(attemptsOf(runner.deliveries)).toEqual(countingTo(tries));
    expect(callsOf(runner.deliveries)).toEqual(new Set([call.callId]));
    expect(idsOf(runner.deliveries).size).toBe(1);
    const events = await spendEventsOf(database, call);
    expect(events.slice(0, 2)).toMatchObject(
      [1, 2].map((attempt) => ({
        type: 'delivery_failed',
        data: { call_id: call.callId, attempt, reason },
      })),
    );
    expect(events.at(-1)).toMatchObject({ type: 'completed', data: { attempt: tries } });
    expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, completed: 1 });
    await expectSound(database);
  });

  test('waits at least as long as Retry-After says', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner((delivery) =>
      carries('limited', delivery) && delivery.attempt === 1
        ? { status: 429, headers: { 'retry-after': '240' } }
        : done,
    );
    const gateway = await gatewayOn(database, runner);
    const limited = await pay(gateway, 'limited');
    await eventually(async () => expect(await typesOf(database, limited)).toEqual(['delivery_failed']));
    // the relay looks at a time before: another call shows that it did
    await database.moveClock(150);
    await reachesState(await pay(gateway, 'another'), 'completed');
    expect(await typesOf(database, limited)).toEqual(['delivery_failed']);
    await database.moveClock(241);
    await reachesState(limited, 'completed');
    expect(attemptsOf(runner.deliveries.filter((delivery) => carries('limited', delivery)))).toEqual([1, 2]);
    await expectSound(database);
  });

  test('becomes a dead letter when its attempts are used up, and a new call with all of them by the operator', async () => {
    const database = await createDatabase();
    const words = `out of\nmemory: token=abc123, postgres://u:pw@db/x, ${runnerSecret}${' and more'.repeat(200)}`;
    const runner = await startTestRunner(({ attempt }) =>
      attempt <= 5 ? { status: 500, headers: { 'content-type': 'text/plain' }, body: words } : done,
    );
    const { lines, logger } = logLines();
    const gateway = await gatewayOn(database, runner, { maxAttempts: 3, logger });
    const call = await pay(gateway);
    await reachesState(call, 'dead_lettered');
    // the reason, the runner and its last words: one line, bounded, without secrets
    const said =
      'status 500: out of memory: token=[hidden], postgres://[hidden]@db/x, [hidden] and more and more';
    const [dead] = await listDeadCalls(database.db, 10);
    expect(dead).toMatchObject({ last_reason: 'attempts_exhausted', last_runner: 'runner-1' });
    expect(dead?.last_error?.startsWith(said)).toBe(true);
    expect(dead?.last_error).toHaveLength(500);
    const facts = { call_id: call.callId, attempt: 3, runner: 'runner-1', reason: 'attempts_exhausted' };
    const logged = await eventually(() => {
      const line = lines.find(({ msg }) => msg.startsWith('dead letter'));
      expect(line).toMatchObject({ level: 50, ...facts, error: dead?.last_error });
      return lines.filter(({ runner: name }) => name === 'runner-1');
    });
    expect(logged.map(({ level }) => level)).toEqual([40, 40, 50]);
    expect((await spendEventsOf(database, call)).slice(2)).toEqual([
      { type: 'delivery_failed', data: { call_id: call.callId, attempt: 3, reason: 'status_500' } },
      { type: 'dead_lettered', data: { call_id: call.callId, attempt: 3, reason: 'attempts_exhausted' } },
    ]);
    expect(await listDeadCalls(database.db, 10)).toMatchObject([
      { call_id: call.callId, stream: call.digest, service_id: 1, job_index: 0, attempt: 3 },
    ]);
    await expectSound(database);

    const operator = operatorOf(database);
    expect(await requeueCall(operator, call.callId)).toEqual({ kind: 'requeued' });
    expect((await reachesState(call, 'completed')).result).not.toBeNull();
    expect(attemptsOf(runner.deliveries)).toEqual(countingTo(6));
    expect(idsOf(runner.deliveries).size).toBe(1);
    expect(await listDeadCalls(database.db, 10)).toEqual([]);
    expect(await requeueCall(operator, call.callId)).toEqual({ kind: 'not_dead' });
    expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({
      accepted: 1,
      dead_lettered: 1,
      delivered: 1,
      completed: 1,
    });
    await expectSound(database);
  });

  /** Which answers are tried again, and which are not, is in test/calls/peers/runner/push-runner.test.ts. */
  test('becomes a dead letter immediately after 400', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => ({ status: 400 }));
    const gateway = await gatewayOn(database, runner);
    const call = await pay(gateway);
    await reachesState(call, 'dead_lettered');
    const data = { call_id: call.callId, attempt: 1, reason: 'status_400' };
    expect(await spendEventsOf(database, call)).toEqual([{ type: 'dead_lettered', data }]);
    expect(await listDeadCalls(database.db, 10)).toMatchObject([{ call_id: call.callId }]);
    await gateway.stop();
    expect(runner.deliveries).toMatchObject([{ path: '/calls' }]);
    await expectSound(database);
  });
});

describe('a runner that answers 410', () => {
  const paused = { type: 'operator_runner_paused' };

  test('to three different calls gets no more calls, from any process and after a restart, until it is resumed', async () => {
    const database = await createDatabase();
    let wanted = false;
    const runner = await startTestRunner(() => (wanted ? done : { status: 410 }));
    // what has failed is due again at once, so that only a pause keeps it back
    const start = () => gatewayOn(database, runner, { maxAttempts: 1_000 });
    const [one, two] = [await start(), await start()];
    const first = [await pay(one), await pay(two), await pay(one)];
    await eventually(async () => expect(await runnerEvents(database)).toMatchObject([paused]));
    await eventually(() => expect(callsOf(runner.deliveries).size).toBe(3));
    // each payment makes its relay look at once, and stop() lets it look to the end
    const later = [await pay(one), await pay(two)];
    await Promise.all([one.stop(), two.stop()]);
    await (await start()).stop();
    expect(callsOf(runner.deliveries)).toEqual(new Set(first.map(({ callId }) => callId)));

    wanted = true;
    const restarted = await start();
    const operator = operatorOf(database);
    expect(await resumeRunner(operator, { name: 'runner-1' }, { operator: 'ada' })).toEqual({
      kind: 'changed',
    });
    expect(await resumeRunner(operator, { name: 'runner-1' }, { operator: 'ada' })).toEqual({
      kind: 'unchanged',
    });
    for (const call of [...first, ...later]) await reachesState(call, 'completed', restarted);
    await expectSound(database);
  });

  test('to one call, however often, does not keep its other calls waiting', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner((call) => (carries('poison', call) ? { status: 410 } : done));
    const gateway = await gatewayOn(database, runner, { maxAttempts: 5 });
    const poison = await pay(gateway, 'poison');
    await reachesState(poison, 'dead_lettered');
    const operator = operatorOf(database);
    expect(await requeueCall(operator, poison.callId)).toEqual({ kind: 'requeued' });
    await reachesState(await pay(gateway), 'completed');
    await eventually(async () => expect((await listDeadCalls(database.db, 9))[0]?.attempt).toBe(10));
    expect(await runnerEvents(database)).toEqual([]);
    await expectSound(database);
  });

  test('is paused once, with any number of running calls', async () => {
    const database = await createDatabase();
    const answer = Promise.withResolvers<Reaction>();
    const runner = await startTestRunner(() => answer.promise);
    const gateway = await gatewayOn(database, runner);
    await Promise.all(countingTo(5).map(() => pay(gateway)));
    await eventually(() => expect(runner.deliveries).toHaveLength(5));
    answer.resolve({ status: 410 });
    await eventually(async () => expect(await runnerEvents(database)).toMatchObject([paused]));
    // the answers to the other calls are recorded before it ends, and pause nothing again
    await gateway.stop();
    expect(await runnerEvents(database)).toHaveLength(1);
    await expectSound(database);
  });
});

describe('a delivery during other events', () => {
  test.each<[string, Reaction]>([
    ['an answer', { status: 200, body: 'too late' }],
    ['a refusal', { status: 400 }],
    ['a failure', { status: 500 }],
    ['that it is busy', { status: 503 }],
  ])('%s after its lease ran out changes nothing for the process that took over', async (_, late) => {
    const database = await createDatabase();
    const answers = [Promise.withResolvers<Reaction>(), Promise.withResolvers<Reaction>()] as const;
    const runner = await startTestRunner(({ attempt }) => answers[attempt === 1 ? 0 : 1].promise);
    // one at a time: it cannot take the call over from itself
    const one = await gatewayOn(database, runner, { keys: 'concurrency_per_runner = 1' });
    const call = await pay(one);
    await eventually(() => expect(runner.deliveries).toHaveLength(1));
    await database.moveClock(3_600);
    const two = await gatewayOn(database, runner);
    await eventually(() => expect(runner.deliveries).toHaveLength(2));

    answers[0].resolve(late);
    await one.stop();
    expect(await typesOf(database, call)).toEqual([]);
    answers[1].resolve({ status: 200, body: 'in time' });
    const { result } = await reachesState(call, 'completed', two);
    expect(Buffer.from(result.body_base64, 'base64').toString()).toBe('in time');
    expect(await spendEventsOf(database, call)).toMatchObject([
      { type: 'delivered', data: { attempt: 2 } },
      { type: 'completed', data: { attempt: 2 } },
    ]);
    expect(attemptsOf(runner.deliveries)).toEqual([1, 2]);
    expect(idsOf(runner.deliveries).size).toBe(1);
    await expectSound(database);
  });

  test('is finished by a gateway that shuts down meanwhile', async () => {
    const database = await createDatabase();
    const answer = Promise.withResolvers<Reaction>();
    const runner = await startTestRunner(() => answer.promise);
    const gateway = await gatewayOn(database, runner);
    const call = await pay(gateway);
    await eventually(() => expect(runner.deliveries).toHaveLength(1));
    const stopping = gateway.stop();
    answer.resolve(done);
    await stopping;
    expect(await typesOf(database, call)).toEqual(['delivered', 'completed']);
    await expectSound(database);
  });

  test('happens once for each of many calls with several processes', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => done);
    const gateways = [await gatewayOn(database, runner), await gatewayOn(database, runner)] as const;
    const calls = await Promise.all(countingTo(12).map((n) => pay(gateways[n % 2 === 0 ? 0 : 1])));
    for (const call of calls) await reachesState(call, 'completed');
    expect(callsOf(runner.deliveries)).toEqual(new Set(calls.map(({ callId }) => callId)));
    expect(idsOf(runner.deliveries).size).toBe(calls.length);
    expect(attemptsOf(runner.deliveries)).toEqual(calls.map(() => 1));
    await expectSound(database);
  });
});

test('a runner gets at most its configured number of concurrent calls', async () => {
  const database = await createDatabase();
  const answers = countingTo(8).map(() => Promise.withResolvers<Reaction>());
  let arrived = 0;
  const runner = await startTestRunner(() => answers[arrived++]?.promise ?? done);
  const gateway = await gatewayOn(database, runner, { keys: 'concurrency_per_runner = 3' });
  const calls = await Promise.all(answers.map(() => pay(gateway)));
  await eventually(() => expect(runner.deliveries).toHaveLength(3));
  for (const [index, { resolve }] of answers.entries()) {
    await eventually(() => expect(runner.deliveries).toHaveLength(Math.min(8, index + 3)));
    resolve(done);
  }
  for (const call of calls) await reachesState(call, 'completed');
  expect(runner.mostAtOnce()).toBe(3);
  expect(attemptsOf(runner.deliveries)).toEqual(answers.map(() => 1));
  await expectSound(database);
});
