import { expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { expectBooks } from '../../support/credit.ts';
import { ask, freeModel, paidModel, startChatGateway } from '../../support/chat-gateway.ts';

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'look_up',
      strict: true,
      parameters: { type: 'object', properties: { at: { type: 'number', multipleOf: 0.1 } } },
    },
  },
];

test("OpenAI's client gets a completion, and its account is charged the cost", async () => {
  const gateway = await startChatGateway();
  const key = await gateway.key(1_000_000n);
  const { data, response, request_id } = await gateway
    .client(key)
    .chat.completions.create(ask('hello there'))
    .withResponse();
  expect(data.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'hello there' } });
  expect(data.usage).toMatchObject({ prompt_tokens: 6, completion_tokens: 2 });
  expect(request_id).toMatch(uuid);
  expect(response.headers.get('cache-control')).toBe('no-store');
  // 6 tokens at 2.50 and 2 at 10 for a million
  await eventually(async () =>
    expect(await (await gateway.get('/v1/credits', key)).json()).toEqual({
      balance: '0.999965',
      held: '0',
      total_used: '0.000035',
    }),
  );
  await expectBooks(gateway.database);
});

test('a stream arrives in pieces and ends, with usage only when requested', async () => {
  const gateway = await startChatGateway();
  const client = gateway.client(await gateway.key());
  const plain = await client.chat.completions.create({ ...ask('one two three'), stream: true });
  const chunks = await Array.fromAsync(plain);
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('one two three');
  expect(chunks.length).toBeGreaterThan(3);
  expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop');

  const counted = await client.chat.completions.create({
    ...ask('one two three'),
    stream: true,
    stream_options: { include_usage: true },
  });
  const last = (await Array.fromAsync(counted)).at(-1);
  expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } });
});

test('tools are passed to the upstream unchanged, and their calls come back, whole and streamed', async () => {
  const gateway = await startChatGateway();
  const client = gateway.client(await gateway.key());
  const asked = { ...ask('call tool look_up'), tools, seed: 7, temperature: 0.1 };
  const { choices } = await client.chat.completions.create(asked);
  expect(choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { name: 'look_up', arguments: '{"prompt":"call tool look_up"}' } }] },
  });
  const whole = await client.chat.completions.stream({ ...asked, stream: true }).finalChatCompletion();
  expect(whole.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'look_up' } }]);
  const [sent] = gateway.model.calls.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  expect(sent).toMatchObject({ tools, seed: 7, temperature: 0.1, model: 'devnet-large' });
});

test('only the body is passed to the upstream: no credential, cookie or other header of the client', async () => {
  const gateway = await startChatGateway();
  const answer = await gateway.post(ask('hello'), {
    authorization: `Bearer ${await gateway.key()}`,
    cookie: 'session=secret',
    'x-forwarded-for': '203.0.113.9',
    'openai-organization': 'org-secret',
  });
  expect(answer.status).toBe(200);
  const { headers } = gateway.model.calls[0] ?? {};
  expect(Object.keys(headers ?? {}).toSorted()).toEqual([
    'accept',
    'connection',
    'content-length',
    'content-type',
    'host',
    'user-agent',
  ]);
});

test('an anonymous client may use models of the free tier, and no other', async () => {
  const gateway = await startChatGateway();
  const client = gateway.client();
  const { choices } = await client.chat.completions.create(ask('hello', freeModel));
  expect(choices[0]?.message.content).toBe('hello');
  await expect(client.chat.completions.create(ask('hello', paidModel))).rejects.toMatchObject({
    status: 402,
    code: 'insufficient_funds',
  });
});

test("every admitted answer reports its caller's limits", async () => {
  const gateway = await startChatGateway();
  const ofKey = await gateway.post(ask('x'), { authorization: `Bearer ${await gateway.key()}` });
  const nowSecs = Date.now() / 1_000;
  expect(Object.fromEntries(ofKey.headers)).toMatchObject({
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '59',
    'ratelimit-policy': '"minute";q=60;w=60',
    ratelimit: '"minute";r=59;t=60',
  });
  const resetSecs = Number(ofKey.headers.get('x-ratelimit-reset'));
  expect(Math.abs(resetSecs - nowSecs - 60)).toBeLessThan(15);
  const [first, second] = [
    await gateway.post({ ...ask('x', freeModel), stream: true }),
    await gateway.post({ ...ask('fault:status_500', freeModel), stream: true }),
  ];
  expect(first.headers.get('ratelimit')).toMatch(/^"minute";r=9;t=60, "day";r=4;t=\d+$/);
  expect(first.headers.get('x-ratelimit-remaining')).toBe('4');
  expect([second.status, second.headers.get('x-ratelimit-remaining')]).toEqual([502, '3']);
  await first.body?.cancel();
});

test('clients are distinguished by the address that a trusted proxy reports', async () => {
  const gateway = await startChatGateway({ chat: 'anonymous_per_day = 1' });
  const from = (address: string) => gateway.post(ask('x', freeModel), { 'x-forwarded-for': address });
  const [first, again, other] = [
    await from('203.0.113.1'),
    await from('203.0.113.1'),
    await from('2001:db8::1'),
  ];
  const neighbour = await from('2001:db8::2');
  expect([first.status, again.status, other.status, neighbour.status]).toEqual([200, 429, 200, 429]);
});

test('only parameters that cost tokens are accepted, on free models too', async () => {
  const gateway = await startChatGateway({
    change: (text) => text.replace('[[models]]', "[[models]]\nallowed_parameters = ['thinking']"),
  });
  const image = [{ type: 'image_url', image_url: { url: 'https://elsewhere.example/x.png' } }];
  for (const [extra, param] of [
    [{ models: ['vendor/dear'] }, 'models'],
    [{ plugins: [{ id: 'web' }] }, 'plugins'],
    [{ max_output_tokens: 1_000_000 }, 'max_output_tokens'],
    [{ messages: [{ role: 'user', content: image }] }, 'messages[0].content[0]'],
  ] as const) {
    const answer = await gateway.post({ ...ask('x', freeModel), ...extra });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_parameter', param } });
  }
  expect(gateway.model.calls).toEqual([]);
  expect((await gateway.post({ ...ask('x', freeModel), thinking: {} })).status).toBe(200);
});
