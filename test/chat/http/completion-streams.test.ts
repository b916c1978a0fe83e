import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import OpenAI, { APIError } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { expectBooks } from '../../support/credit.ts';
import { ask, freeModel, type ChatGateway, startChatGateway } from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';

/** What a promise that fails fails with. */
const thrownBy = (promise: Promise<unknown>) =>
  promise.then(() => undefined).catch((error: unknown) => error);

/** What became of the only completion, once it is settled. */
async function settled({ database }: ChatGateway) {
  const ends = await eventually(async () => {
    const events = (await expectBooks(database)).filter(
      ({ type }) => type === 'chat_completed' || type === 'chat_failed',
    );
    expect(events).toHaveLength(1);
    return events;
  });
  return ends[0]?.data;
}

test('a client that leaves a stream aborts the upstream immediately, and is charged for what was written', async () => {
  const gateway = await startChatGateway({ model: { pieceMs: 20 } });
  const client = gateway.client(await gateway.key());
  const stream = await client.chat.completions.create({ ...ask('words:5000'), stream: true });
  let read = 0;
  for await (const _ of stream) if (++read === 5) break;
  await eventually(() => expect(gateway.model.calls[0]?.state).toBe('dropped'));
  expect(gateway.model.calls[0]?.sentBytes).toBeLessThan(100_000);
  expect(await settled(gateway)).toMatchObject({ ending: 'client_left', is_estimate: true });
});

test('a client that leaves a stream before its first byte aborts the upstream immediately, and is charged for the prompt only', async () => {
  const gateway = await startChatGateway();
  const key = await gateway.key(1_000_000n);
  const disconnect = new AbortController();
  const client = gateway.client(key);
  const request = { ...ask('fault:hang'), stream: true } as const;
  const waiting = client.chat.completions.create(request, { signal: disconnect.signal });
  const thrown = thrownBy(waiting);
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  disconnect.abort();
  expect(await thrown).toBeInstanceOf(OpenAI.APIUserAbortError);
  await eventually(() => expect(gateway.model.calls[0]?.state).toBe('dropped'));
  expect(await settled(gateway)).toMatchObject({
    ending: 'client_left',
    completion_tokens: 0,
    is_estimate: true,
  });
  const credits = (await (await gateway.get('/v1/credits', key)).json()) as { balance: string; held: string };
  expect(credits.held).toBe('0');
  expect(Number(credits.balance)).toBeLessThan(1);
  expect(Number(credits.balance)).toBeGreaterThan(0.999);
});

test('a client that abandons an answer without a stream is charged with what the upstream wrote, as one that stays', async () => {
  const costs: unknown[] = [];
  for (const leaves of [false, true]) {
    // the whole answer is one piece: its upstream waits until the client has left for certain
    const gateway = await startChatGateway({ model: { slowMs: leaves ? 8_000 : 0 } });
    const disconnect = new AbortController();
    const client = gateway.client(await gateway.key(), { maxRetries: 0 });
    const request = ask('words:100 fault:slow_first_byte');
    const waiting = client.chat.completions.create(request, { signal: disconnect.signal });
    const thrown = thrownBy(waiting);
    await eventually(() => expect(gateway.model.calls).toHaveLength(1));
    if (leaves) disconnect.abort();
    expect((await thrown) !== undefined).toBe(leaves);
    const end = await settled(gateway);
    expect(end).toMatchObject({ ending: leaves ? 'client_left' : 'completed', is_estimate: false });
    costs.push(end);
  }
  const [stayed, left] = costs as { cost_micros: string; completion_tokens: number }[];
  expect(left).toMatchObject({
    cost_micros: stayed?.cost_micros,
    completion_tokens: stayed?.completion_tokens,
  });
  expect(stayed?.completion_tokens).toBeGreaterThan(90);
});

/** Opens a stream over a connection that reads nothing by itself. */
async function openSlowly(gateway: ChatGateway, body: object): Promise<Socket> {
  const text = JSON.stringify(body);
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  );
  return socket;
}

test('a slow client slows its upstream down instead of filling memory', async () => {
  const gateway = await startChatGateway();
  // some 64 MB, were it read
  const socket = await openSlowly(gateway, { ...ask('words:2000x32000', freeModel), stream: true });
  const sentBytes = () => gateway.model.calls[0]?.sentBytes ?? 0;
  await eventually(() => expect(sentBytes()).toBeGreaterThan(0));
  await eventually(async () => {
    const before = sentBytes();
    for (let read = 0; read < 20; read++) {
      socket.read(1);
      await wait(10);
    }
    expect(sentBytes()).toBe(before);
  });
  // the kernel's buffers of three connections, and a little memory of the gateway
  expect(sentBytes()).toBeLessThan(24_000_000);
  socket.destroy();
  await eventually(() => expect(gateway.model.calls[0]?.state).toBe('dropped'));
  expect(await settled(gateway)).toMatchObject({ ending: 'client_left' });
});

test("a stream that the upstream cuts raises an error in OpenAI's client, and never ends normally", async () => {
  const gateway = await startChatGateway();
  const client = gateway.client(await gateway.key());
  for (const fault of ['cut_after_first_token', 'malformed_chunk', 'error_in_stream']) {
    const stream = await client.chat.completions.create({ ...ask(`fault:${fault} two`), stream: true });
    const reading = Array.fromAsync(stream);
    await expect(reading).rejects.toThrow(APIError);
    await expect(reading).rejects.toMatchObject({ error: { code: 'upstream_error' } });
  }
});

test('a stream longer than the shutdown grace is cut with an error, and its cost is recorded', async () => {
  const gateway = await startChatGateway({ top: 'shutdown_grace_secs = 1', model: { pieceMs: 10 } });
  const client = gateway.client(await gateway.key(), { maxRetries: 0 });
  const stream = await client.chat.completions.create({ ...ask('words:5000'), stream: true });
  const thrown = thrownBy(Array.fromAsync(stream));
  await eventually(() => expect(gateway.model.calls[0]?.sentBytes).toBeGreaterThan(1_000));
  await gateway.stop();
  expect(await thrown).toBeInstanceOf(Error);
  expect(await settled(gateway)).toMatchObject({ ending: 'client_left', reason: 'aborted' });
});
