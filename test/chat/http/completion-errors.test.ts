import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
} from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { openAiErrorBody } from '../../../src/chat/http/schemas/openai.ts';
import { revokeApiKey } from '../../../src/accounts/store/api-keys.ts';
import { allEvents } from '../../support/invariants.ts';
import {
  ask,
  freeModel,
  paidModel,
  type ChatGateway,
  startChatGateway,
  useChatGateway,
} from '../../support/chat-gateway.ts';
import { logLines } from '../../support/log-lines.ts';
import { type RawRequest, sendHead } from '../../support/raw-request.ts';
import { eventually } from '../../support/wait.ts';
import { listening } from '../../support/listening.ts';

const start = useChatGateway();
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** OpenAI's client as it is, and how often it asked. */
function countingClient(gateway: ChatGateway, key?: string) {
  let asked = 0;
  const client = gateway.client(key, {
    fetch: (url, init) => {
      asked++;
      return fetch(url, init);
    },
  });
  return { client, asked: () => asked };
}

/** What the client throws: class, status, code, and how often it tried. */
async function thrownBy(gateway: ChatGateway, body: object, key?: string) {
  const { client, asked } = countingClient(gateway, key);
  const error: unknown = await client.chat.completions
    .create(body as ReturnType<typeof ask>)
    .then(() => undefined)
    .catch((thrown: unknown) => thrown);
  if (!(error instanceof APIError)) throw new Error('nothing of the API was thrown', { cause: error });
  const { status, code, param, type, requestID } = error;
  expect(requestID).toMatch(uuid);
  return { kind: error.constructor, status, code, param, type, asked: asked() };
}

const invalid = 'invalid_request_error';

/** What else of a request is refused is in test/chat/rules/chat-request.test.ts. */
test('a request with two limits of tokens raises a BadRequestError, and the client does not retry', async () => {
  const gateway = start();
  const body = { ...ask('x'), max_tokens: 1, max_completion_tokens: 2 };
  expect(await thrownBy(gateway, body, await gateway.key())).toMatchObject({
    kind: BadRequestError,
    status: 400,
    type: invalid,
    param: 'max_tokens',
    asked: 1,
  });
  expect(gateway.model.calls).toEqual([]);
});

test.each([
  ['an unknown key', 'sk-net-0000000000000000000000000000000000000000'],
  ['a key of another service', 'sk-proj-abcdef'],
  ['a password', 'hunter2'],
])('%s raises an AuthenticationError without a retry, and is never served as anonymous', async (_, key) => {
  const gateway = start();
  expect(await thrownBy(gateway, ask('x', freeModel), key)).toMatchObject({
    kind: AuthenticationError,
    status: 401,
    code: 'invalid_api_key',
    asked: 1,
  });
});

test('an expired key raises an AuthenticationError on every route', async () => {
  const gateway = start();
  const key = await gateway.key(1_000n, { expiresAt: new Date(0) });
  expect(await thrownBy(gateway, ask('x', freeModel), key)).toMatchObject({ kind: AuthenticationError });
  for (const path of ['/v1/models', `/v1/models/${freeModel}`, '/v1/credits', '/v1/key', '/v1/generation'])
    expect((await gateway.get(path, key)).status).toBe(401);
});

test('an unknown model raises a NotFoundError, and the client does not retry', async () => {
  const gateway = start();
  expect(await thrownBy(gateway, ask('x', 'gpt-none'), await gateway.key())).toMatchObject({
    kind: NotFoundError,
    code: 'model_not_found',
    param: 'model',
    asked: 1,
  });
});

test('after a full minute limit the client waits for Retry-After and gets its answer', async () => {
  const gateway = await startChatGateway({ chat: 'key_per_minute = 1' });
  const key = await gateway.key();
  // another process, whose refusal cache is empty
  const other = await startChatGateway({ database: gateway.database, chat: 'key_per_minute = 1' });
  const bearer = { authorization: `Bearer ${key}` };
  expect((await gateway.post(ask('x'), bearer)).status).toBe(200);
  const full = await gateway.post(ask('x'), bearer);
  expect(full.status).toBe(429);
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(50);
  expect(full.headers.get('x-ratelimit-remaining')).toBe('0');
  await gateway.database.moveClock(Number(full.headers.get('retry-after')) - 2);
  const { client, asked } = countingClient(other, key);
  await client.chat.completions.create(ask('x'));
  expect(asked()).toBe(2);
});

/** How each fault of an upstream is answered is in test/chat/use-cases/faults.test.ts. */
test.each([
  ['status_500', 502, 'upstream_error'],
  ['rate_limited', 503, 'upstream_unavailable'],
])('an upstream with %s raises an InternalServerError after three attempts', async (fault, status, code) => {
  const gateway = await startChatGateway({ model: { retryAfterSecs: 0 } });
  const key = await gateway.key();
  expect(await thrownBy(gateway, ask(`fault:${fault}`), key)).toMatchObject({
    kind: InternalServerError,
    status,
    code,
    asked: 3,
  });
});

test('an upstream error passed on contains no address, key or path', async () => {
  const server = createServer((_, response) => {
    response.writeHead(400, { 'content-type': 'application/json' });
    const message = 'Too long: see http://10.0.0.7:8000/docs, key sk-abc123def456, in /opt/vllm/serving.py';
    response.end(JSON.stringify({ error: { message, code: 'context_length_exceeded', param: 'http://x' } }));
  });
  const at = await listening(server);
  const gateway = await startChatGateway({ upstreamUrl: `${at}/v1` });
  const answer = await gateway.post(ask('x', freeModel));
  expect(openAiErrorBody.parse(await answer.json())).toEqual({
    error: {
      message: 'Too long: see … key …, in …',
      type: invalid,
      param: null,
      code: 'context_length_exceeded',
    },
  });
});

/** Sends header lines as they stand, twice if they stand twice. */
async function send(gateway: ChatGateway, headers: readonly string[], path = '/v1/chat/completions') {
  const call = request(gateway.url + path, { method: 'POST', headers });
  call.end(JSON.stringify(ask('x', freeModel)));
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  const text = (await answer.toArray()).join('');
  return { status: answer.statusCode, json: openAiErrorBody.parse(JSON.parse(text)) };
}

const json = ['host', 'gateway', 'content-type', 'application/json'];

test.each([
  ['Authorization', 'Bearer a', 'Bearer a'],
  ['X-Payment-Signature', '{}', '{}'],
])('a request with two %s headers is refused', async (name, one, other) => {
  const gateway = start();
  const { status, json: body } = await send(gateway, [...json, name, one, name, other]);
  expect(status).toBe(400);
  expect(body.error.message).toContain(`${name} more than once`);
});

test('a request with two kinds of credentials is refused', async () => {
  const gateway = start();
  const both = ['authorization', `Bearer ${await gateway.key()}`, 'x-payment-signature', '{}'];
  expect(await send(gateway, [...json, ...both])).toMatchObject({
    status: 400,
    json: { error: { code: 'conflicting_credentials' } },
  });
});

test.each([
  ['GET', '/v1/nowhere', 404, 'not_found'],
  ['POST', '/v1/nowhere', 404, 'not_found'],
  ['GET', '/v1', 404, 'not_found'],
  ['GET', '/v1/%zz', 400, 'invalid_request'],
  ['GET', '/v1/chat/completions', 405, 'method_not_allowed'],
  ['DELETE', `/v1/models/${paidModel}`, 405, 'method_not_allowed'],
  ['POST', '/v1/credits', 405, 'method_not_allowed'],
  ['GET', '/v1/models/none', 404, 'model_not_found'],
  ['GET', '/v1/credits', 401, 'invalid_api_key'],
  ['GET', '/v1/generation?id=none', 401, 'invalid_api_key'],
])("%s %s is answered with %d in OpenAI's error format", async (method, path, status, code) => {
  const gateway = start();
  const init = method === 'POST' ? { body: '{', headers: { 'content-type': 'application/json' } } : {};
  const answer = await fetch(gateway.url + path, { method, ...init });
  expect([answer.status, openAiErrorBody.parse(await answer.json()).error.code]).toEqual([status, code]);
  expect(answer.headers.get('x-request-id')).toMatch(uuid);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.headers.get('allow') !== null).toBe(status === 405);
});

/** Sends bytes unchanged, and returns the answer. */
async function exchange(gateway: ChatGateway, bytes: string): Promise<string> {
  const { port } = new URL(gateway.url);
  const socket = connect(Number(port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(bytes);
  return (await socket.setEncoding('utf8').toArray()).join('');
}

test.each([
  [
    'too large headers',
    `POST /v1/chat/completions HTTP/1.1\r\nx: ${'y'.repeat(70_000)}`,
    431,
    'headers_too_large',
  ],
  ['an invalid header', 'GET /v1/models HTTP/1.1\r\nno header\r\n\r\n', 400, 'invalid_request'],
])("a request with %s is refused by the parser in OpenAI's error format", async (_, bytes, status, code) => {
  const [head = '', body = ''] = (await exchange(start(), bytes)).split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*\r\nx-request-id: [0-9a-f-]{36}$`));
  expect(openAiErrorBody.parse(JSON.parse(body)).error.code).toBe(code);
});

test('every route answers ledger_unavailable while the ledger cannot be reached', async () => {
  const gateway = await startChatGateway({ top: 'shutdown_grace_secs = 1' });
  const key = await gateway.key();
  const bearer = { authorization: `Bearer ${key}` };
  expect((await gateway.post(ask('x'), bearer)).status).toBe(200);
  await gateway.database.away(true);
  const answers = await Promise.all([
    gateway.post(ask('x'), bearer),
    gateway.post(ask('x', freeModel)),
    ...['/v1/models', '/v1/credits', '/v1/key', '/v1/generation?id=x'].map((path) => gateway.get(path, key)),
  ]);
  for (const answer of answers) {
    expect([answer.status, openAiErrorBody.parse(await answer.json()).error.code]).toEqual([
      503,
      'ledger_unavailable',
    ]);
    expect(answer.headers.get('retry-after')).toBe('2');
  }
  expect((await gateway.get('/v1/models')).status).toBe(200);
  await eventually(async () => expect((await gateway.get('/v1/ready')).status).toBe(503));
  await gateway.database.away(false);
  await eventually(async () => expect((await gateway.post(ask('x'), bearer)).status).toBe(200));
  expect(gateway.model.calls).toHaveLength(2);
});

test('on a halted ledger completions are refused and no upstream is called, while reads still answer', async () => {
  const gateway = await startChatGateway();
  const key = await gateway.key();
  await gateway.database.pool.query(`select tollbook.halt_ledger('events were lost', 7, 3)`);
  for (let i = 0; i < 2; i++) {
    const answer = await gateway.post(ask('x'), { authorization: `Bearer ${key}` });
    expect([answer.status, openAiErrorBody.parse(await answer.json()).error.code]).toEqual([
      503,
      'ledger_inconsistent',
    ]);
  }
  expect(gateway.model.calls).toEqual([]);
  expect((await gateway.get('/v1/key', key)).status).toBe(200);
  expect((await gateway.get('/v1/ready')).status).toBe(200);
});

test('a gateway at its request limit refuses immediately', async () => {
  const gateway = await startChatGateway({ constants: { limits: { maxInFlightRequests: 1 } } });
  const disconnect = new AbortController();
  const client = gateway.client(await gateway.key());
  const hanging = { ...ask('fault:hang'), stream: true } as const;
  const waiting = client.chat.completions.create(hanging, { signal: disconnect.signal });
  const thrown = waiting.then(() => undefined).catch((error: unknown) => error);
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  const busy = await gateway.post(ask('x', freeModel));
  expect([busy.status, openAiErrorBody.parse(await busy.json()).error.code]).toEqual([503, 'overloaded']);
  expect(busy.headers.get('retry-after')).toBe('1');
  disconnect.abort();
  expect(await thrown).toBeInstanceOf(OpenAI.APIUserAbortError);
  await eventually(async () => expect((await gateway.post(ask('x', freeModel))).status).toBe(200));
});

test('a client that guesses keys is limited, and cached keys keep working', async () => {
  const gateway = await startChatGateway({ constants: { chat: { failedAuthPerMinute: 2 } } });
  const good = await gateway.key();
  expect((await gateway.get('/v1/key', good)).status).toBe(200);
  const stranger = await startChatGateway();
  const unknown = await stranger.key();
  const statuses = [];
  for (let tries = 0; tries < 3; tries++) statuses.push((await gateway.get('/v1/key', unknown)).status);
  expect(statuses).toEqual([401, 401, 429]);
  expect((await gateway.get('/v1/key', good)).status).toBe(200);
});

test('concurrent guesses of keys are limited like sequential ones', async () => {
  const gateway = await startChatGateway({ constants: { chat: { failedAuthPerMinute: 5 } } });
  const stranger = await startChatGateway();
  const unknown = await Promise.all(Array.from({ length: 30 }, () => stranger.key()));
  const answers = await Promise.all(unknown.map((key) => gateway.get('/v1/key', key)));
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
  const stopped = answers.filter(({ status }) => status === 429);
  expect(stopped).toHaveLength(25);
  for (const { headers } of stopped) expect(Number(headers.get('retry-after'))).toBeGreaterThan(50);
});

test('a revoked key leaves the cache, and counts as a failed credential', async () => {
  const gateway = await startChatGateway({ constants: { chat: { failedAuthPerMinute: 4 } } });
  const { database } = gateway;
  const key = await gateway.key();
  const tried = async (path?: string) => {
    const bearer = { authorization: `Bearer ${key}` };
    return (await (path ? gateway.get(path, key) : gateway.post(ask('x', freeModel), bearer))).status;
  };
  expect(await tried()).toBe(200);
  expect(await revokeApiKey(database.pool, 1)).toBe(true);
  expect([await tried(), await tried(), await tried('/v1/credits'), await tried()]).toEqual([
    401, 401, 401, 401,
  ]);
  expect([await tried(), await tried('/v1/models')]).toEqual([429, 429]);
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type === 'chat_refused')).toHaveLength(1);
});

test('a client that leaves, at whatever moment, leaves no error and no stack trace in the log', async () => {
  const log = logLines();
  const gateway = await startChatGateway({ model: { pieceMs: 20 }, logger: log.logger });
  const authorization = `Bearer ${await gateway.key()}`;
  const sendPrompt = async (prompt: string, stream: boolean, declaredBytes?: number) => {
    const body = JSON.stringify({ ...ask(prompt), stream });
    const sent = await sendHead(gateway.url, '/v1/chat/completions', {
      authorization,
      'content-type': 'application/json',
      'content-length': declaredBytes ?? Buffer.byteLength(body),
    });
    sent.socket.write(body);
    return sent;
  };
  const left: RawRequest[] = [];
  left.push(await sendPrompt('words:5000', false, 500));
  left.push(await sendPrompt('words:5000', false));
  left.push(await sendPrompt('words:5000', true));
  await eventually(async () => expect(left[2]?.text()).toContain('data:'));
  left.push(await sendPrompt('fault:hang', true));
  await eventually(async () => expect(gateway.model.calls).toHaveLength(3));
  for (const { socket } of left) socket.resetAndDestroy();
  await eventually(async () =>
    expect(log.lines.filter(({ msg }) => msg === 'request')).toHaveLength(left.length),
  );
  await gateway.stop();
  expect(log.lines.filter((line) => line.level > 30 || JSON.stringify(line).includes('stack'))).toEqual([]);
});
