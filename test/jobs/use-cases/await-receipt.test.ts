import { once } from 'node:events';
import { get } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import type { Hex } from '../../../src/base/values/primitives.ts';
import { awaitReceipt } from '../../../src/jobs/use-cases/follow-receipt.ts';
import type { ReceiptReading } from '../../../src/jobs/use-cases/receipt.ts';
import { receiptKeysOf } from '../../../src/payments/use-cases/receipt-keys.ts';
import { createStreamWatch, type StreamWatch } from '../../../src/calls/use-cases/stream-watch.ts';
import { createSharedReads } from '../../../src/base/runtime/shared-reads.ts';
import { queriesOn } from '../../../src/ledger/store/database.ts';
import { completeCall, failCall, leaseOne, leasingRunner, paid } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { type Answer, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, quoteAndSign } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';

async function start(
  database: TestDatabase,
  tables = '',
  { quiet = false, limits = {} }: { quiet?: boolean; limits?: ConstantChanges['limits'] } = {},
): Promise<TestGateway> {
  const gateway = await startTestGateway({
    database,
    chain,
    quiet,
    isDocumented: true,
    tables: `${leasingRunner}\n${tables}`,
    constants: { limits },
  });
  onTestFinished(async () => void (await gateway.stop()));
  return gateway;
}

const textOf = (answer: Answer): string => Buffer.from(answer.json.result.body_base64, 'base64').toString();

/** True if the promise has not settled yet. */
function isOpen(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => false), Promise.resolve(true)]);
}

test('a receipt that is waited for comes with its result when a runner of another gateway has completed the call', async () => {
  const database = await createDatabase();
  const [gateway, other] = [await start(database), await start(database)];
  const { path, bearer } = await paid(gateway);
  const waiting = gateway.get(`${path}?wait_secs=60`, bearer);
  const call = await leaseOne(other);
  expect(await isOpen(waiting)).toBe(true);
  await completeCall(other, call);
  const answer = await waiting;
  expect([answer.status, answer.json.state, textOf(answer)]).toEqual([200, 'completed', 'done']);
});

test('a waited-for receipt comes in its present state when its time is over, and immediately where the call is a dead letter', async () => {
  const gateway = await start(await createDatabase());
  const { path } = await paid(gateway);
  const early = await gateway.get(`${path}?wait_secs=1`);
  expect([early.status, early.json.state]).toEqual([200, 'enqueued']);
  const waiting = gateway.get(`${path}?wait_secs=60`);
  await failCall(gateway, await leaseOne(gateway));
  expect((await waiting).json.state).toBe('dead_lettered');
  expect((await gateway.get(`${path}?wait_secs=60`)).json.state).toBe('dead_lettered');
});

test('an unknown receipt is answered without waiting, and a wait of more than a minute or an invalid one is refused', async () => {
  const gateway = await start(await createDatabase());
  const unknown = await gateway.get(`/x402/receipts/0x${'ab'.repeat(32)}?wait_secs=60`);
  expect([unknown.status, unknown.json.code]).toEqual([404, 'receipt_not_found']);
  for (const secs of ['61', '-1', 'soon', '1.5']) {
    const refused = await gateway.get(`/x402/receipts/0x${'ab'.repeat(32)}?wait_secs=${secs}`);
    expect([refused.status, refused.json.code]).toEqual([400, 'invalid_request']);
  }
});

test('one client has only so many requests that wait, and all clients together too; a request that does not wait is answered', async () => {
  const gateway = await start(await createDatabase(), '', {
    limits: { maxWaitingRequests: 3, maxWaitingRequestsPerClient: 2 },
  });
  const { path } = await paid(gateway);
  const from = (client: string) => gateway.get(`${path}?wait_secs=60`, { 'x-forwarded-for': client });
  const waiting = [from('203.0.113.1'), from('203.0.113.1')];
  await eventually(async () => {
    const refused = await from('203.0.113.1');
    expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([
      429,
      'too_many_waits',
      '5',
    ]);
  });
  waiting.push(from('203.0.113.2'));
  await eventually(async () => expect((await from('203.0.113.3')).status).toBe(429));
  expect((await gateway.get(path, { 'x-forwarded-for': '203.0.113.1' })).status).toBe(200);
  await completeCall(gateway, await leaseOne(gateway));
  expect((await Promise.all(waiting)).map(({ json }) => json.state)).toEqual(Array(3).fill('completed'));
  // their places are free again
  expect((await from('203.0.113.3')).status).toBe(200);
});

test('a paid request that prefers to wait has the result in a 200 with every field and header of the 202', async () => {
  const gateway = await start(await createDatabase());
  const payment = await quoteAndSign(gateway, job, 'a body');
  const send = (prefer: string) =>
    gateway.post(job, { body: 'a body', headers: { ...header(payment), prefer } });
  const waiting = send('respond-async, wait=60');
  await completeCall(gateway, await leaseOne(gateway), 'the result');
  const answer = await waiting;
  expect([answer.status, answer.json.status, textOf(answer)]).toEqual([200, 'completed', 'the result']);
  expect(answer.headers.get('preference-applied')).toBe('wait=60');
  const plain = await gateway.post(job, { body: 'a body', headers: header(payment) });
  expect([plain.status, plain.json.status]).toEqual([202, 'accepted']);
  expect(answer.json).toEqual({ ...plain.json, status: 'completed', result: answer.json.result });
  for (const name of ['payment-response', 'location', 'cache-control'])
    expect(answer.headers.get(name)).toBe(plain.headers.get(name));
  // the same payment again
  const again = await send('wait=60');
  expect([again.status, again.headers.get('idempotent-replayed'), textOf(again)]).toEqual([
    200,
    'true',
    'the result',
  ]);
});

test('a paid request whose result is not ready in time, or is a dead letter, gets its 202; a malformed preference is ignored', async () => {
  const gateway = await start(await createDatabase());
  const payment = await quoteAndSign(gateway, job, 'a body');
  const send = (prefer: string) =>
    gateway.post(job, { body: 'a body', headers: { ...header(payment), prefer } });
  const late = await send('wait=1');
  expect([late.status, late.json.status, late.headers.get('preference-applied')]).toEqual([
    202,
    'accepted',
    'wait=1',
  ]);
  const malformed = await send('wait=soon');
  expect([malformed.status, malformed.headers.get('preference-applied')]).toEqual([202, null]);
  const waiting = send('wait=9999');
  await failCall(gateway, await leaseOne(gateway));
  const dead = await waiting;
  expect([dead.status, dead.json.status, dead.headers.get('preference-applied')]).toEqual([
    202,
    'accepted',
    'wait=60',
  ]);
});

test('a paid request that prefers to wait is answered immediately where no place to wait is free', async () => {
  const gateway = await start(await createDatabase(), '', { limits: { maxWaitingRequests: 1 } });
  const { path } = await paid(gateway);
  const holder = gateway.get(`${path}?wait_secs=60`);
  await eventually(async () => expect((await gateway.get(`${path}?wait_secs=1`)).status).toBe(429));
  const payment = await quoteAndSign(gateway, job, 'a body');
  const answer = await gateway.post(job, {
    body: 'a body',
    headers: { ...header(payment), prefer: 'wait=60' },
  });
  expect([answer.status, answer.headers.get('preference-applied')]).toEqual([202, null]);
  expect(await isOpen(holder)).toBe(true);
  await completeCall(gateway, await leaseOne(gateway));
  expect((await holder).json.state).toBe('completed');
});

test('a payment that is sent again without the secret of its offer gets no result, whatever it prefers', async () => {
  const gateway = await start(await createDatabase());
  const payment = await quoteAndSign(gateway, job, 'a body');
  const first = gateway.post(job, { body: 'a body', headers: { ...header(payment), prefer: 'wait=60' } });
  await completeCall(gateway, await leaseOne(gateway));
  expect((await first).status).toBe(200);
  const stranger = structuredClone(payment);
  delete (stranger.accepted.extra as Record<string, unknown>)['offerSecret'];
  const answer = await gateway.post(job, {
    body: 'a body',
    headers: { ...header(stranger), prefer: 'wait=60' },
  });
  expect([answer.status, answer.json]).toEqual([202, { status: 'accepted' }]);
});

test('a client that comes back after the life of its result learns that it was deleted, and when; the ledger has an event about it', async () => {
  const database = await createDatabase();
  const keepDay = '[retention]\nresults_days = 1';
  const gateway = await start(database, keepDay);
  const { path, bearer } = await paid(gateway);
  await completeCall(gateway, await leaseOne(gateway));
  await database.moveClock(25 * 3_600);
  // prunes as it starts, as any gateway does in its turn
  await start(database, keepDay);
  const late = await eventually(async () => {
    const { json } = await gateway.get(`${path}?wait_secs=60`, bearer);
    expect(json).toMatchObject({ state: 'completed', result: null, result_pruned: true });
    return json;
  });
  const deletedSecs = Date.parse(late.result_pruned_at) / 1_000;
  expect(Math.abs(deletedSecs - Date.now() / 1_000 - 25 * 3_600)).toBeLessThan(120);
  expect((await gateway.get(path)).json).not.toHaveProperty('result_pruned_at');
  const pruned = ['call_bodies', 'call_results'].map((kind) => ({
    kind,
    count: 1,
    before: expect.any(Number) as number,
  }));
  await eventually(async () => {
    const events = (await allEvents(database.db)).filter(({ type }) => type === 'data_pruned');
    expect(events.map(({ data }) => data)).toEqual([{ pruned }]);
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('requests that wait are answered when the gateway stops, and it does not wait for them', async () => {
  const gateway = await start(await createDatabase());
  const { path } = await paid(gateway);
  const waiting = gateway.get(`${path}?wait_secs=60`);
  await eventually(() => expect(gateway.openRequests()).toBe(1));
  await gateway.stop();
  expect((await waiting).json.state).toBe('enqueued');
});

interface ReceiptEvent {
  readonly id: number;
  readonly event: string;
  readonly data: Answer['json'];
}

/**
 * The events of a stream, until it ends.
 * @param onText gets all that has come so far, each time that more comes
 */
async function eventsOf(response: Response, onText: (text: string) => void = () => {}) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    onText(text);
  }
  const blocks = text.split('\n\n').filter((block) => block.includes('data: '));
  return blocks.map((block): ReceiptEvent => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
    return { id: Number(field('id')), event: field('event'), data: JSON.parse(field('data')) };
  });
}

test('an event stream has each state of a receipt until the final one with its result, and continues where it was interrupted', async () => {
  const gateway = await start(await createDatabase());
  const { path, bearer } = await paid(gateway);
  const follow = (more: Record<string, string> = {}) =>
    fetch(gateway.url + path, { headers: { accept: 'text/event-stream', ...bearer, ...more } });
  const [response, { json: known }] = [await follow(), await gateway.get(path)];
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  let streamed = '';
  const whole = eventsOf(response, (text) => (streamed = text));
  const call = await leaseOne(gateway);
  await eventually(() => expect(streamed).toContain('"state":"delivered"'));
  await completeCall(gateway, call);
  const events = await whole;
  expect(events.map(({ data }) => data.state)).toEqual(['enqueued', 'delivered', 'completed']);
  expect(events.map(({ event }) => event)).toEqual(['state', 'state', 'final']);
  expect(events[0]?.id).toBe(known.events.length);
  expect(Buffer.from(events[2]?.data.result.body_base64, 'base64').toString()).toBe('done');
  // connected again, a client gets what it has not seen; the end in any case
  const rest = async (lastId: number) =>
    (await eventsOf(await follow({ 'last-event-id': String(lastId) }))).map(({ event }) => event);
  expect(await rest(events[1]?.id ?? 0)).toEqual(['final']);
  expect(await rest(events[2]?.id ?? 0)).toEqual(['final']);
  const unknown = await fetch(`${gateway.url}/x402/receipts/0x${'ab'.repeat(32)}`, {
    headers: { accept: 'text/event-stream' },
  });
  expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([
    404,
    'receipt_not_found',
  ]);
});

test('a client that leaves an event stream gives its place back', async () => {
  const gateway = await start(await createDatabase(), '', { limits: { maxWaitingRequests: 1 } });
  const { path } = await paid(gateway);
  const stream = get(gateway.url + path, { headers: { accept: 'text/event-stream' } });
  await once(stream, 'response');
  expect((await gateway.get(`${path}?wait_secs=1`)).status).toBe(429);
  stream.on('error', () => {}).destroy();
  await eventually(async () => expect((await gateway.get(`${path}?wait_secs=1`)).status).toBe(200));
});

test('three hundred who wait for one receipt read it once when they are woken, and each has its result', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const { path } = await paid(gateway);
  const digest = path.split('/').at(-1) as Hex;
  let [queries, waits, isStopping] = [0, 0, false];
  const counted = new Proxy(database.pool, {
    get(pool, name) {
      if (name === 'query' || name === 'connect') queries++;
      const value: unknown = Reflect.get(pool, name, pool);
      return typeof value === 'function' ? value.bind(pool) : value;
    },
  });
  const db = queriesOn(counted);
  const stopping = (): boolean => isStopping;
  onTestFinished(() => void (isStopping = true));
  const watch = createStreamWatch({ pool: counted, db }, stopping);
  const grown: StreamWatch['grown'] = (seen, over) => {
    waits++;
    return watch.grown(seen, over);
  };
  const streams = { ...watch, grown };
  const receiptKeys = receiptKeysOf(undefined, Buffer.alloc(32));
  const config = { callbacks: undefined };
  const context = { pool: counted, db, config, publicUrl: () => gateway.url, receiptKeys, streams, stopping };
  const following = { digest, withResult: true, waitSecs: 60, signal: new AbortController().signal };
  const reads = createSharedReads<ReceiptReading | undefined>();
  const waiting = Array.from({ length: 300 }, () => awaitReceipt(context, { ...following, reads }));
  await eventually(() => expect(waits).toBe(300));
  const [before, beforeMs] = [queries, performance.now()];
  const call = await leaseOne(gateway);
  await eventually(() => expect(waits).toBe(600));
  await completeCall(gateway, call);
  const results = (await Promise.all(waiting)).map((reading) => reading?.receipt.result);
  const result = { content_type: 'text/plain', body_base64: 'ZG9uZQ==' };
  expect(results).toEqual(Array.from(waiting, () => result));
  // two wake-ups, delivered and completed, of a few reads each; and a look in a tenth of a second
  expect(queries - before).toBeLessThan(40 + (performance.now() - beforeMs) / 100);
});
