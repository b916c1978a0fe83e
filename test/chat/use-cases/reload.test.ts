import { expect, test } from 'vitest';
import { startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { expectBooks } from '../../support/credit.ts';
import { allEvents } from '../../support/invariants.ts';
import {
  ask,
  freeModel,
  paidModel,
  type ChatGateway,
  type ChatGatewayOptions,
  chatConfigText,
  startChatGateway,
} from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';

/** Another configuration of the same gateway, with its text changed. */
const reload = async (gateway: ChatGateway, options: Partial<ChatGatewayOptions>) =>
  gateway.reload(await chatConfigText({ upstreamUrl: gateway.model.url, ...options }));

const dear = (text: string) => text.replace('"10.00"', '"10000.00"');

test('a running completion keeps its price during a reload, and the next one has the new price', async () => {
  const gateway = await startChatGateway({ model: { pieceMs: 20 } });
  const key = await gateway.key();
  const client = gateway.client(key);
  const body = { ...ask('one two three four five'), stream: true, max_tokens: 100 } as const;
  const first = await client.chat.completions.create(body).withResponse();
  expect(await reload(gateway, { change: dear })).toEqual([]);
  expect(await client.models.retrieve(paidModel)).toMatchObject({ price: { output: '10000' } });
  await Array.fromAsync(first.data);
  const used = async () => (await gateway.get('/v1/credits', key)).json();
  // 9 tokens at 2.50 and 5 at 10 for a million
  await eventually(async () => expect(await used()).toMatchObject({ total_used: '0.000073' }));
  const next = await client.chat.completions.create(body).withResponse();
  await Array.fromAsync(next.data);
  await eventually(async () => expect(await used()).toMatchObject({ total_used: '0.050096' }));
  const priceOf = async (id: string | null) =>
    ((await (await gateway.get(`/v1/generation?id=${id}`, key)).json()) as { price: { output: string } })
      .price.output;
  expect(await Promise.all([first.request_id, next.request_id].map(priceOf))).toEqual(['10', '10000']);
  await expectBooks(gateway.database);
});

test('a stream from an upstream that a reload removed is finished', async () => {
  const gateway = await startChatGateway({ model: { pieceMs: 20 } });
  const other = await startModelUpstream({ port: 0 });
  const client = gateway.client(await gateway.key());
  const stream = await client.chat.completions.create({ ...ask('words:30'), stream: true });
  await reload(gateway, { upstreamUrl: other.url });
  await client.chat.completions.create(ask('hello'));
  expect(other.calls).toHaveLength(1);
  const chunks = await Array.fromAsync(stream);
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop');
  await gateway.stop();
  await other.close();
});

test('a reload removes models and changes limits immediately', async () => {
  const gateway = await startChatGateway();
  await reload(gateway, {
    change: (text) => text.replace(freeModel, 'new-small'),
    chat: 'anonymous_per_day = 3',
  });
  expect((await gateway.post(ask('x', freeModel))).status).toBe(404);
  const answer = await gateway.post(ask('x', 'new-small'));
  expect(answer.headers.get('x-ratelimit-limit')).toBe('3');
});

test('a reload is recorded with a hash of what is served; a new currency requires a restart', async () => {
  const gateway = await startChatGateway();
  expect(await reload(gateway, {})).toEqual([]);
  expect(await reload(gateway, { change: dear })).toEqual([]);
  expect(await reload(gateway, { chat: 'currency = "EUR"', top: 'shutdown_grace_secs = 7' })).toEqual([
    'shutdown_grace_secs',
    'chat.currency',
  ]);
  await gateway.refuseReload(2);
  const events = await allEvents(gateway.database.db);
  expect(events.map(({ stream, type }) => [stream, type])).toEqual([
    ...Array.from({ length: 3 }, () => ['operator:config', 'operator_models_loaded']),
    ['operator:config', 'operator_config_refused'],
  ]);
  const [first, second, third] = events.map(({ data }) => JSON.stringify(data));
  expect([first === second, first === third]).toEqual([false, true]);
  const { data } = (await (await gateway.get('/v1/models')).json()) as { data: { price: object }[] };
  expect(data[0]?.price).toMatchObject({ currency: 'USD' });
});
