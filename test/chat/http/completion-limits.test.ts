import { expect, onTestFinished, test } from 'vitest';
import { issueApiKey } from '../../../src/accounts/use-cases/api-keys.ts';
import { fund, laneOn } from '../../support/credit.ts';
import { allEvents } from '../../support/invariants.ts';
import { ask, freeModel, paidModel, startChatGateway } from '../../support/chat-gateway.ts';
import { documentOf } from '../../support/documented.ts';
import { sendHead } from '../../support/raw-request.ts';

/** The limit headers of an answer, with their times as seconds from now. */
function standing({ headers }: Response) {
  const resetSecs = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1_000;
  const [minute, day] = (headers.get('ratelimit') ?? '')
    .split(', ')
    .map((window) => /;r=(\d+);t=(\d+)$/.exec(window)?.slice(1).map(Number));
  const retrySecs = Number(headers.get('retry-after'));
  return { resetSecs, minute, day, retrySecs, remaining: headers.get('x-ratelimit-remaining') };
}

const untilMidnightSecs = () => 86_400 - ((Date.now() / 1_000) % 86_400);

test('a refusal by the minute limit names that limit, and reports what is left of the day', async () => {
  const gateway = await startChatGateway({ constants: { chat: { anonymousPerMinute: 2 } } });
  const post = () => gateway.post(ask('x', freeModel));
  for (const status of [200, 200]) expect((await post()).status).toBe(status);
  // asked of the ledger, and remembered
  for (let tries = 0; tries < 2; tries++) {
    const answer = await post();
    expect(answer.status).toBe(429);
    const { minute, day, retrySecs, resetSecs, remaining } = standing(answer);
    expect(remaining).toBe('0');
    expect(retrySecs).toBeGreaterThan(50);
    expect(retrySecs).toBeLessThanOrEqual(60);
    expect(minute).toEqual([0, retrySecs]);
    expect(Math.abs(resetSecs - retrySecs)).toBeLessThan(15);
    expect(day?.[0]).toBe(3);
    expect(Math.abs((day?.[1] ?? 0) - untilMidnightSecs())).toBeLessThan(15);
  }
});

test('the last completion of a minute and the refusal after it have the limit headers that the document describes', async () => {
  const gateway = await startChatGateway({ constants: { chat: { anonymousPerMinute: 1 } } });
  const check = await documentOf(gateway);
  for (const expected of [200, 429]) {
    const answer = await gateway.post(ask('x', freeModel));
    const { status, headers } = answer;
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([expected, '0']);
    const of = { status, headers, text: await answer.text() };
    expect(check('POST', '/v1/chat/completions', of)).toEqual([]);
  }
});

test('a refusal by the day limit names that limit, and reports what is left of the minute', async () => {
  const gateway = await startChatGateway({ chat: 'anonymous_per_day = 1' });
  const post = () => gateway.post(ask('x', freeModel));
  expect((await post()).status).toBe(200);
  for (let tries = 0; tries < 2; tries++) {
    const answer = await post();
    expect(answer.status).toBe(429);
    const { minute, day, retrySecs, resetSecs, remaining } = standing(answer);
    expect([remaining, minute?.[0], day?.[0]]).toEqual(['0', 9, 0]);
    expect(minute?.[1]).toBeLessThanOrEqual(60);
    for (const secs of [retrySecs, resetSecs, day?.[1] ?? 0])
      expect(Math.abs(secs - untilMidnightSecs())).toBeLessThan(15);
  }
});

test('an answer shortened to what the account can pay records no refusal', async () => {
  const gateway = await startChatGateway();
  const funded = { authorization: `Bearer ${await gateway.key(10_000n)}` };
  const broke = { authorization: `Bearer ${await gateway.key(10n)}` };
  expect((await gateway.post(ask('x'), funded)).status).toBe(200);
  const refusals = async () =>
    (await allEvents(gateway.database.db)).filter(({ type }) => type === 'chat_refused');
  expect(await refusals()).toEqual([]);
  expect((await gateway.post(ask('x'), broke)).status).toBe(402);
  expect((await refusals()).map(({ data }) => data)).toMatchObject([{ code: 'insufficient_funds' }]);
});

test('the budget of a key is not exceeded by many simultaneous requests over two gateways, and a refusal says when it starts anew', async () => {
  const gateway = await startChatGateway();
  const other = await startChatGateway({ database: gateway.database });
  // each request may cost up to 1,020 micros
  const key = await gateway.key(1_000_000n, { budget: { micros: 10_300n, period: 'day' } });
  const bearer = { authorization: `Bearer ${key}` };
  const body = { ...ask('words:1'), max_tokens: 100 };
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => [gateway, other][at % 2]!.post(body, bearer)),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]));
  const refused = (await answers.find(({ status }) => status === 402)!.json()) as { error: object };
  expect(refused.error).toMatchObject({
    code: 'key_budget_reached',
    type: 'insufficient_funds',
    message: expect.stringMatching(
      /Nothing was charged\. Wait until \d{4}-\d\d-\d\dT00:00:00Z, when the budget starts anew/,
    ),
  });
  const secs = Number(answers.find(({ status }) => status === 402)!.headers.get('retry-after'));
  expect(Math.abs(secs - untilMidnightSecs())).toBeLessThan(15);
  const state = (await (await other.get('/v1/key', key)).json()) as { budget: { spent: string } };
  expect(state.budget).toMatchObject({ amount: '0.0103', period: 'day' });
  // settled or still held, it was never more
  expect(Number(state.budget.spent)).toBeLessThanOrEqual(0.0103);
  const free = await gateway.post(ask('x', freeModel), bearer);
  expect(free.status).toBe(200);
});

const hanging = (model: string) => ({ ...ask('fault:stall_mid_stream', model), stream: true });

test('one wallet without credit, and one address, occupy a few slots of an upstream; paid models keep theirs', async () => {
  const gateway = await startChatGateway({
    chat: 'anonymous_per_day = 100',
    upstream: 'max_concurrent = 7',
    constants: { chat: { maxConcurrentPerClient: 5, maxConcurrentFreePerClient: 2 } },
  });
  const open = async (model: string, key: string | undefined, address: string): Promise<number> => {
    const answer = await gateway.post(hanging(model), {
      'x-forwarded-for': address,
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    });
    bodies.push(answer.body);
    return answer.status;
  };
  const bodies: Response['body'][] = [];
  const broke = await gateway.key(0n);
  const statuses: number[] = [];
  // one account from many addresses, then one address with many accounts and none
  for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    statuses.push(await open(freeModel, broke, address));
  expect(statuses).toEqual([200, 200, 429]);
  expect(await open(freeModel, undefined, '10.0.0.1')).toBe(200);
  expect(await open(freeModel, await gateway.key(0n), '10.0.0.1')).toBe(429);
  expect(await open(freeModel, undefined, '10.0.0.4')).toBe(200);
  // four free ones run: no further one, from wherever it comes
  expect(await open(freeModel, undefined, '10.0.0.5')).toBe(503);
  const paying = await gateway.key();
  for (let paid = 0; paid < 3; paid++) expect(await open(paidModel, paying, '10.0.1.1')).toBe(200);
  for (const body of bodies) await body?.cancel();
});

test('a client address whose requests are refused all the time is refused before its body is read, and no other is', async () => {
  const gateway = await startChatGateway({ tables: '[limits]\nrequests_per_minute = 3' });
  const key = await gateway.key();
  const from = (address: string, authorization?: string) =>
    gateway.post(ask('x'), {
      'x-forwarded-for': address,
      ...(authorization !== undefined && { authorization }),
    });
  // what is answered costs no budget
  for (let times = 0; times < 5; times++) expect((await from('192.0.2.1', `Bearer ${key}`)).status).toBe(200);
  for (let times = 0; times < 3; times++) expect((await from('192.0.2.1')).status).toBe(402);
  const unread = await sendHead(gateway.url, '/v1/chat/completions', {
    'content-type': 'application/json',
    'content-length': 500_000,
    'x-forwarded-for': '192.0.2.1',
  });
  onTestFinished(() => void unread.socket.destroy());
  expect(await unread.status()).toBe(429);
  expect(unread.text()).toMatch(/retry-after: \d+/i);
  expect((await from('192.0.2.2', `Bearer ${key}`)).status).toBe(200);
});

test('a refused request counts against its client address by the size of its body', async () => {
  const gateway = await startChatGateway({ tables: '[limits]\nrequests_per_minute = 6' });
  const key = await gateway.key();
  const from = (address: string, content: string, authorization?: string) =>
    gateway.post(ask(content), {
      'x-forwarded-for': address,
      ...(authorization !== undefined && { authorization }),
    });
  const large = 'x'.repeat(5 * 16 * 1_024);
  expect((await from('192.0.2.1', large)).status).toBe(402);
  expect((await from('192.0.2.1', 'x')).status).toBe(429);
  // what is answered costs nothing, whatever its size
  for (let times = 0; times < 3; times++)
    expect((await from('192.0.2.2', large, `Bearer ${key}`)).status).toBe(200);
});

const statusesOf = async (requests: readonly (() => Promise<Response>)[]): Promise<number[]> => {
  const statuses: number[] = [];
  for (const send of requests) statuses.push((await send()).status);
  return statuses;
};

test('the requests that arrive with a key count, also those that are refused; a 429 is free and costs no parsing', async () => {
  const gateway = await startChatGateway({ chat: 'key_per_minute = 4' });
  const bearer = { authorization: `Bearer ${await gateway.key(1n)}` };
  const wrong = () => gateway.post('{', bearer);
  const unknown = () => gateway.post(ask('x', 'unknown'), bearer);
  const unpaid = () => gateway.post(ask('x'), bearer);
  const free = () => gateway.post(ask('x', freeModel), bearer);
  expect(await statusesOf([wrong, unknown, unpaid, free, wrong, unknown, unpaid, free])).toEqual([
    400, 404, 402, 200, 429, 429, 429, 429,
  ]);
  const { rows } = await gateway.database.pool.query(
    "select cardinality(hits) as hits from tollbook.rate_window where subject like 'key:%'",
  );
  expect(rows).toEqual([{ hits: 4 }]);
  const key = await gateway.database.pool.query('select last_used_at from tollbook.api_key');
  expect(key.rows[0]).toMatchObject({ last_used_at: expect.any(Date) });
});

test('keys, accounts and clients without credentials share the limit of free models of their account and of their address', async () => {
  const gateway = await startChatGateway({ chat: 'free_per_day = 3' });
  const { pool } = gateway.database;
  const lane = laneOn(gateway.database);
  const accountId = await fund(gateway.database, lane, 0n);
  const keys = await Promise.all(
    Array.from({ length: 5 }, () => issueApiKey({ pool, lane }, { accountId, name: 'one of many' })),
  );
  const from = (address: string, key?: string) => () =>
    gateway.post(ask('x', freeModel), {
      'x-forwarded-for': address,
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    });
  const ofAccount = keys.map(({ key }, at) => from(`10.0.0.${at + 1}`, key));
  expect(await statusesOf(ofAccount)).toEqual([200, 200, 200, 429, 429]);
  const ofAddress = [
    await gateway.key(0n),
    await gateway.key(0n),
    undefined,
    await gateway.key(0n),
    undefined,
  ];
  expect(await statusesOf(ofAddress.map((key) => from('10.0.1.1', key)))).toEqual([200, 200, 200, 429, 429]);
});

test('a request without credentials counts against its day whatever it ends with, 429 excepted', async () => {
  const gateway = await startChatGateway({
    constants: { chat: { anonymousMaxBodyBytes: 2_000, maxBodyBytes: 4_000 } },
  });
  const asked: [unknown, Record<string, string>][] = [
    ['{', {}],
    [ask('x', 'unknown'), {}],
    [ask('x'.repeat(3_000), freeModel), {}],
    [ask('x'), {}],
    [ask('x', freeModel), { 'content-type': 'text/plain' }],
    [ask('x', freeModel), {}],
    ['{', {}],
  ];
  const answers: (readonly [number, string | null, string | null])[] = [];
  for (const [body, headers] of asked) {
    const answer = await gateway.post(body, headers);
    const left = answer.headers.get('x-ratelimit-remaining');
    answers.push([answer.status, answer.headers.get('x-ratelimit-limit'), left]);
  }
  expect(answers).toEqual([
    [400, '5', '4'],
    [404, '5', '3'],
    [413, '5', '2'],
    [402, '5', '1'],
    [415, '5', '0'],
    [429, '5', '0'],
    [429, '5', '0'],
  ]);
  const { rows } = await gateway.database.pool.query('select day_hits from tollbook.rate_window');
  expect(rows).toEqual([{ day_hits: 5 }]);
  // beyond every limit of a body, which no parser sees
  const large = await gateway.post(ask('x'.repeat(5_000), freeModel), { 'x-forwarded-for': '10.0.0.9' });
  expect([large.status, large.headers.get('x-ratelimit-remaining')]).toEqual([413, '4']);
});

test('no limit joins credentials that no operator has set: two keys of one account and address have sixty free requests each', async () => {
  const gateway = await startChatGateway();
  const { pool } = gateway.database;
  const lane = laneOn(gateway.database);
  const accountId = await fund(gateway.database, lane, 0n);
  const keys = await Promise.all(
    ['one', 'other'].map((name) => issueApiKey({ pool, lane }, { accountId, name })),
  );
  const answers: Response[] = [];
  // few at once: more of one address have no slots
  for (let round = 0; round < 13; round++) {
    const tries = keys.flatMap(({ key }) => Array.from({ length: 5 }, () => `Bearer ${key}`));
    const sent = tries.map((authorization) => gateway.post(ask('x', freeModel), { authorization }));
    answers.push(...(await Promise.all(sent)));
  }
  const counted = Map.groupBy(answers, ({ status }) => status);
  expect([counted.get(200)?.length, counted.get(429)?.length]).toEqual([120, 10]);
  expect(counted.get(429)?.[0]?.headers.get('x-ratelimit-limit')).toBe('60');
});
