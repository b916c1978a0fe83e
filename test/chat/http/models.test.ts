import { expect, test } from 'vitest';
import { projectToHead } from '../../../src/audit/use-cases/projections/project.ts';
import type { UsageJson } from '../../../src/chat/http/schemas/usage.ts';
import { documentOf } from '../../support/documented.ts';
import { ask, freeModel, paidModel, type ChatGateway, startChatGateway } from '../../support/chat-gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { eventually } from '../../support/wait.ts';

const free = {
  id: freeModel,
  object: 'model',
  created: expect.any(Number),
  owned_by: 'tollbook',
  free_tier: true,
  price: { input: '0', output: '0', cached_input: '0', cache_write: '0', currency: 'USD' },
  context_length: 32_768,
  max_output_tokens: 4_096,
};
const paid = {
  ...free,
  id: paidModel,
  free_tier: false,
  price: { input: '2.5', output: '10', cached_input: '2.5', cache_write: '2.5', currency: 'USD' },
  context_length: 131_072,
  max_output_tokens: 16_384,
};

/** Reads a path, and holds what comes against the gateway's own document. */
async function documented(gateway: ChatGateway) {
  const check = await documentOf(gateway);
  return async (path: string, key?: string) => {
    const { status, headers, ...rest } = await gateway.get(path, key).then(async (answer) => ({
      status: answer.status,
      headers: answer.headers,
      text: await answer.text(),
    }));
    expect(check('GET', path, { status, headers, ...rest })).toEqual([]);
    return { status, json: JSON.parse(rest.text) };
  };
}

test("OpenAI's client lists the models, with their prices and lengths", async () => {
  const gateway = await startChatGateway();
  const get = await documented(gateway);
  expect((await get('/v1/models')).json).toEqual({ object: 'list', data: [free, paid] });
  const listed = await Array.fromAsync(gateway.client(await gateway.key()).models.list());
  expect(listed).toEqual([free, paid]);
});

test('a model is found by its name, with slashes plain or escaped', async () => {
  const gateway = await startChatGateway();
  expect(await gateway.client().models.retrieve(paidModel)).toEqual(paid);
  for (const path of [paidModel, encodeURIComponent(paidModel)])
    expect(await (await gateway.get(`/v1/models/${path}`)).json()).toEqual(paid);
  const get = await documented(gateway);
  expect((await get(`/v1/models/${freeModel}`)).json).toEqual(free);
  expect((await get('/v1/models/none')).status).toBe(404);
});

test('a key lists exactly the models that it may use', async () => {
  const gateway = await startChatGateway();
  const key = await gateway.key(1_000n, { models: [freeModel] });
  const get = await documented(gateway);
  expect((await get('/v1/models', key)).json.data).toEqual([free]);
  expect((await gateway.get(`/v1/models/${paidModel}`, key)).status).toBe(404);
  expect((await get('/v1/key', key)).json.models).toEqual([freeModel]);
});

test('a key reports what is left of it', async () => {
  const gateway = await startChatGateway({ chat: 'key_per_minute = 7\ncurrency = "EUR"' });
  const expiresAt = new Date(Date.now() + 3_600_000);
  const key = await gateway.key(5_000_000n, { capMicros: 1_000_000n, expiresAt });
  const get = await documented(gateway);
  const fresh = {
    name: 'of a test',
    id: 1,
    models: null,
    cap: '1',
    spent: '0',
    budget: null,
    remaining: '1',
    currency: 'EUR',
    requests_per_minute: 7,
    created_at: expect.any(String),
    expires_at: expiresAt.toISOString(),
    last_used_at: null,
  };
  expect((await get('/v1/key', key)).json).toEqual(fresh);
  await gateway.client(key).chat.completions.create(ask('hello there'));
  await eventually(async () =>
    expect((await get('/v1/key', key)).json).toEqual({
      ...fresh,
      spent: '0.000035',
      remaining: '0.999965',
      last_used_at: expect.any(String),
    }),
  );
  const dear = await gateway.post(
    { ...ask('hello'), max_tokens: 16_000, n: 7 },
    { authorization: `Bearer ${key}` },
  );
  expect(dear.status).toBe(402);
});

test('a completion can be read only by its own account', async () => {
  const gateway = await startChatGateway();
  const [key, other] = [await gateway.key(), await gateway.key()];
  const get = await documented(gateway);
  const { request_id: id } = await gateway
    .client(key)
    .chat.completions.create(ask('hello there'))
    .withResponse();
  const path = `/v1/generation?id=${id}`;
  await eventually(async () =>
    expect(await get(path, key)).toEqual({
      status: 200,
      json: {
        id,
        model: paidModel,
        upstream: 'model',
        created_at: expect.any(String),
        streamed: false,
        status: 'completed',
        prompt_tokens: 6,
        completion_tokens: 2,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimate: false,
        price: { input: '2.5', output: '10', cached_input: '2.5', cache_write: '2.5' },
        cost: '0.000035',
        held: expect.any(String),
        captured: '0.000035',
        released: expect.any(String),
        key_id: 1,
        ended_at: expect.any(String),
        reason: null,
        events: expect.arrayContaining([
          { seq: expect.any(Number), type: 'chat_completed', at: expect.any(String) },
          { seq: expect.any(Number), type: 'credit_captured', at: expect.any(String) },
        ]),
        first_byte_ms: expect.any(Number),
        latency_ms: expect.any(Number),
      },
    }),
  );
  expect((await get(path, other)).status).toBe(404);
  expect((await get(path)).status).toBe(401);
  for (const nothing of ['', '?id=', '?id=x', `?id=${id}&id=${id}`, `?id=${crypto.randomUUID()}`])
    expect((await get(`/v1/generation${nothing}`, key)).status).toBe(404);
});

test('an account lists its own completions, the newest first, by key, model and day, in pages and as a file', async () => {
  const gateway = await startChatGateway();
  const [key, other] = [await gateway.key(), await gateway.key()];
  const get = await documented(gateway);
  const ids: (string | null)[] = [];
  for (const [content, model] of [
    ['one', paidModel],
    ['two', freeModel],
    ['fault:status_500', paidModel],
  ] as const) {
    const answer = await gateway.post(ask(content, model), { authorization: `Bearer ${key}` });
    await answer.text();
    if (answer.ok) ids.unshift(answer.headers.get('x-request-id'));
  }
  await gateway.client(other).chat.completions.create(ask('not theirs'));
  await eventually(async () => {
    await projectToHead(gateway.database);
    const { json } = await get('/v1/generations', key);
    expect(json.rows.map(({ status }: { status: string }) => status)).toEqual([
      'failed',
      'completed',
      'completed',
    ]);
  });
  const { json } = await get('/v1/generations', key);
  expect(json).toMatchObject({ currency: 'USD', next: null });
  expect(json.rows.slice(1).map(({ id }: { id: string }) => id)).toEqual(ids);
  expect(json.rows[0]).toMatchObject({ cost: null, prompt_tokens: null, status: 'failed' });
  expect(json.rows[2]).toMatchObject({
    model: paidModel,
    key: { id: 1, name: 'of a test' },
    prompt_tokens: 5,
    completion_tokens: 1,
    cached_tokens: 0,
    cost: '0.000023',
  });
  const seen: string[] = [];
  for (let cursor = ''; ;) {
    const { json: page } = await get(`/v1/generations?limit=1${cursor}`, key);
    seen.push(...page.rows.map(({ id }: { id: string }) => id));
    if (page.next === null) break;
    cursor = `&cursor=${page.next}`;
  }
  expect(seen.slice(1)).toEqual(ids);
  const countOf = async (query: string) => (await get(`/v1/generations?${query}`, key)).json.rows.length;
  const today = json.rows[0].created_at.slice(0, 10);
  expect(await countOf(`model=${encodeURIComponent(paidModel)}&key_id=1&from=${today}&to=2100-01-01`)).toBe(
    2,
  );
  expect(await countOf('key_id=0')).toBe(0);
  expect(await countOf('to=2001-01-01')).toBe(0);
  expect(await countOf('from=2100-01-01')).toBe(0);
  const file = await gateway.get('/v1/generations.csv?limit=2', key);
  const lines = (await file.text()).split('\r\n');
  expect(lines[0]).toBe(
    'created_at,id,model,key_id,key_name,status,prompt_tokens,completion_tokens,cached_tokens,cost',
  );
  expect(lines[2]).toContain(`,${ids[0]},${freeModel},1,of a test,completed,5,1,0,0`);
  expect(file.headers.get('link')).toMatch(/^<\/v1\/generations\.csv\?limit=2&cursor=\d+>; rel="next"$/);
  for (const query of ['from=2026-02-30', 'cursor=x', 'limit=0', 'key_id=-1', 'by=day', 'cursor=0'])
    expect((await get(`/v1/generations?${query}`, key)).status).toBe(400);
  expect((await get('/v1/generations')).status).toBe(401);
});

test('the status names each model whose upstreams fail, and the gateway stays ready', async () => {
  const gateway = await startChatGateway({ chat: 'key_per_minute = 1_000' });
  const get = await documented(gateway);
  const { authorization } = await operatorOf(gateway.database, ['status:read']);
  const states = async () => (await get('/status', authorization.slice('Bearer '.length))).json.chat;
  const well = { ok: true };
  expect(await states()).toMatchObject({ status: 'ok', models: { [freeModel]: well, [paidModel]: well } });
  gateway.model.failWith('status_500');
  const bearers = await Promise.all(
    Array.from({ length: 5 }, async () => ({ authorization: `Bearer ${await gateway.key()}` })),
  );
  const [bearer = {}] = bearers;
  const bad = { ok: false, detail: 'its upstreams fail' };
  for (const each of bearers) await gateway.post(ask('x'), each);
  expect(await states()).toMatchObject({
    status: 'degraded',
    models: { [freeModel]: well, [paidModel]: bad },
  });
  for (const each of bearers) await gateway.post(ask('x', freeModel), each);
  expect(await states()).toMatchObject({ models: { [freeModel]: bad, [paidModel]: bad } });
  await eventually(async () =>
    expect(await get('/v1/ready')).toMatchObject({ status: 200, json: { status: 'ready' } }),
  );
  gateway.model.failWith(undefined);
  await eventually(async () => expect((await gateway.post(ask('x'), bearer)).status).toBe(200));
  await eventually(async () => expect((await states()).models[paidModel]).toMatchObject(well));
});

test('answers to chat requests match the OpenAPI document', async () => {
  const gateway = await startChatGateway();
  // only for the upstream that hangs: a busy machine answers all other requests later than that
  const impatient = await startChatGateway({
    database: gateway.database,
    upstream: 'timeout_ms = 200',
  });
  const check = await documentOf(gateway);
  const key = await gateway.key(1_000_000n);
  const seen = async (body: unknown, headers: Record<string, string> = {}, from = gateway) => {
    const answer = await from.post(body, { authorization: `Bearer ${key}`, ...headers });
    const { status } = answer;
    const text = await answer.text();
    expect(check('POST', '/v1/chat/completions', { status, headers: answer.headers, text })).toEqual([]);
    return status;
  };
  expect(await seen(ask('hello'))).toBe(200);
  expect(await seen({ ...ask('hello'), stream: true })).toBe(200);
  expect(await seen('{')).toBe(400);
  expect(await seen(ask('hello'), { authorization: 'Bearer no' })).toBe(401);
  expect(await seen({ ...ask('hello'), max_tokens: 16_000, n: 100 })).toBe(402);
  expect(await seen(ask('hello', 'none'))).toBe(404);
  expect(await seen('x'.repeat(10_485_761))).toBe(413);
  expect(await seen(ask('hello'), { 'content-type': 'text/plain' })).toBe(415);
  expect(await seen(ask('fault:html'))).toBe(502);
  expect(await seen(ask('fault:hang'), {}, impatient)).toBe(504);
  expect(await seen(ask('fault:rate_limited'))).toBe(503);
});

test('a key was last used when any request presented it, also one that only reads or is refused', async () => {
  const gateway = await startChatGateway();
  const lastUsed = async (): Promise<string | null> => {
    const { rows } = await gateway.database.pool.query<{ at: string | null }>(
      'select last_used_at::text as at from tollbook.api_key order by key_id desc limit 1',
    );
    return rows[0]?.at ?? null;
  };
  const uses: ((key: string) => Promise<Response>)[] = [
    (key) => gateway.get('/v1/models', key),
    (key) => gateway.get('/v1/credits', key),
    (key) => gateway.post(ask('more than there is'), { authorization: `Bearer ${key}` }),
  ];
  for (const use of uses) {
    const key = await gateway.key(1n);
    expect(await lastUsed()).toBeNull();
    await use(key);
    await eventually(async () => expect(await lastUsed()).not.toBeNull());
  }
});

test('usage is summed by day, model and key, in pages and as CSV, and an account sees only its own', async () => {
  const gateway = await startChatGateway();
  const [key, stranger] = [await gateway.key(5_000_000n), await gateway.key(5_000_000n)];
  for (const [who, model] of [
    [key, paidModel],
    [key, paidModel],
    [key, freeModel],
    [stranger, paidModel],
  ] as const)
    await gateway.client(who).chat.completions.create(ask('hello there', model));
  const get = await documented(gateway);
  await eventually(async () => expect((await get('/v1/credits', key)).json.held).toBe('0'));
  await eventually(async () => expect((await get('/v1/credits', stranger)).json.held).toBe('0'));
  await projectToHead(gateway.database);
  const today = new Date().toISOString().slice(0, 10);
  const { json } = await get('/v1/usage', key);
  expect(json).toMatchObject({ to: today, next: null, currency: 'USD' });
  expect(
    json.rows.map(({ model, requests, failed }: UsageJson['rows'][number]) => [model, requests, failed]),
  ).toEqual([
    [freeModel, '1', '0'],
    [paidModel, '2', '0'],
  ]);
  expect(json.rows[1]).toMatchObject({ day: today, key: { name: 'of a test' } });
  expect(json.rows[1].cost).toBe((await get('/v1/credits', key)).json.total_used);
  const byKey = await get('/v1/usage?by=key', key);
  expect(byKey.json.rows).toMatchObject([{ day: null, model: null, requests: '3' }]);
  const first = await get('/v1/usage?limit=1', key);
  const second = await get(`/v1/usage?limit=1&cursor=${first.json.next}`, key);
  expect([...first.json.rows, ...second.json.rows]).toEqual(json.rows);
  expect((await get(`/v1/usage?limit=1&cursor=${second.json.next}`, key)).json.rows).toEqual([]);
  const csv = await gateway.get('/v1/usage.csv?limit=1', key);
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(csv.headers.get('link')).toContain(`cursor=${first.json.next}`);
  expect((await csv.text()).split('\r\n')[1]).toMatch(
    new RegExp(`^${today},${freeModel},\\d+,of a test,1,0,`),
  );
  for (const query of [
    'by=hour',
    'from=2026-02-30',
    'from=2020-01-01',
    `by=key&cursor=${first.json.next}`,
    'cursor=x',
    // what the database does not take
    'to=0001-01-01',
    'model=%00',
    `by=model&cursor=${Buffer.from('{"model":"\\u0000"}').toString('base64url')}`,
  ])
    expect([query, (await gateway.get(`/v1/usage?${query}`, key)).status]).toEqual([query, 400]);
  expect((await gateway.get('/v1/usage')).status).toBe(401);
});
