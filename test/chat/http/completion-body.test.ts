import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openAiErrorBody } from '../../../src/chat/http/schemas/openai.ts';
import { ask, freeModel, startChatGateway } from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';

const invalid = 'invalid_request_error';

test('a body of ten megabytes is accepted, and one byte more is refused', async () => {
  const gateway = await startChatGateway();
  const key = { authorization: `Bearer ${await gateway.key()}` };
  const shell = JSON.stringify(ask('', freeModel)).length;
  const full = JSON.stringify(ask('a'.repeat(10_485_760 - shell), freeModel));
  expect(Buffer.byteLength(full)).toBe(10_485_760);
  expect((await gateway.post(full, key)).status).toBe(200);
  const refused = await gateway.post(`${full} `, key);
  expect([refused.status, openAiErrorBody.parse(await refused.json()).error.code]).toEqual([
    413,
    'body_too_large',
  ]);
  expect(gateway.model.calls).toHaveLength(1);
});

test('a body of a request without credentials is parsed up to one megabyte', async () => {
  const gateway = await startChatGateway();
  const sent = async (bytes: number): Promise<number> =>
    (await gateway.post(' '.repeat(bytes - 2) + '{}')).status;
  expect([await sent(1_048_576), await sent(1_048_577)]).toEqual([400, 413]);
});

/** A request of ten megabytes. */
const large = (prompt: string) => ask(`${prompt} ${'a'.repeat(10_000_000)}`, freeModel);

test('a body gets memory for its whole processing, or is refused immediately', async () => {
  const gateway = await startChatGateway({ chat: 'key_per_minute = 100' });
  const key = { authorization: `Bearer ${await gateway.key()}` };
  const disconnect = new AbortController();
  const hanging = [1, 2].map(() =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(large('fault:hang')),
      signal: disconnect.signal,
    }).catch(() => undefined),
  );
  await eventually(() => expect(gateway.model.calls).toHaveLength(2));
  const refused = await gateway.post(large('hello'), key);
  expect([refused.status, openAiErrorBody.parse(await refused.json()).error.code]).toEqual([
    503,
    'overloaded',
  ]);
  expect((await gateway.post(ask('small', freeModel), key)).status).toBe(200);
  disconnect.abort();
  await Promise.all(hanging);
  // what has begun to be answered takes little: more fit than that wait for their answer
  for (let begun = 0; begun < 3; begun++) {
    const answer = await eventually(async () => {
      const tried = await gateway.post({ ...large('fault:stall_mid_stream'), stream: true }, key);
      expect(tried.status).toBe(200);
      return tried;
    });
    onTestFinished(() => answer.body?.cancel());
  }
});

test('a slow sender does not keep other requests out', async () => {
  const gateway = await startChatGateway();
  const { port } = new URL(gateway.url);
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n';
  const piece = Buffer.alloc(9_000_000, ' ');
  for (let client = 0; client < 40; client++) {
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(`${head}content-length: 9000001\r\n\r\n`);
    await new Promise((resolve) => socket.write(piece, resolve));
  }
  expect((await gateway.post(ask('x'.repeat(1_000_000), freeModel))).status).toBe(200);
});

test.each([
  ['invalid JSON', '{"model":'],
  ['a hundred thousand open levels', '{"a":'.repeat(100_000)],
  ['fifty thousand closed levels', `{"model":"m","messages":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
  ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]).toString('latin1')],
])('a body of %s is 400', async (_, body) => {
  const gateway = await startChatGateway();
  const answer = await gateway.post(body);
  expect([answer.status, openAiErrorBody.parse(await answer.json()).error.type]).toEqual([400, invalid]);
});

test.each([
  ['text/plain', undefined],
  ['application/json', 'gzip'],
])('a body labelled %s, encoded %s, is 415', async (type, encoding) => {
  const gateway = await startChatGateway();
  const headers = { 'content-type': type, ...(encoding ? { 'content-encoding': encoding } : {}) };
  const answer = await gateway.post(ask('x', freeModel), headers);
  expect([answer.status, openAiErrorBody.parse(await answer.json()).error.code]).toEqual([
    415,
    'unsupported_media_type',
  ]);
});

test('JSON with a charset is accepted', async () => {
  const gateway = await startChatGateway();
  const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
  expect((await gateway.post(ask('x', freeModel), headers)).status).toBe(200);
});
