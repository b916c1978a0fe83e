import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { boundReaders, endInTime, type ReaderBounds } from '../../../src/base/http/slow-readers.ts';
import { RefusedRequestError } from '../../../src/base/http/request-bodies.ts';
import { eventually } from '../../support/wait.ts';

const megabyte = 1_000_000;
const generous: ReaderBounds = {
  patienceMs: 600_000,
  leastBytesPerSec: 1,
  maxBytesOfClient: 1_000 * megabyte,
  maxBytes: 10_000 * megabyte,
};

/** An app whose answer has this many megabytes. */
async function serve(bounds: Partial<ReaderBounds>, megabytes: number) {
  const app = fastify();
  boundReaders(app, { ...generous, ...bounds });
  const body = Buffer.alloc(megabytes * megabyte, 'x');
  app.get('/', (_, reply) => reply.send(body));
  app.post('/', (_, reply) => reply.send(body));
  app.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof RefusedRequestError && error.code === 'too_many_attempts' ? 429 : 500).send(),
  );
  app.get('/text', (_, reply) => reply.send('ä'.repeat(100_000)));
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  const { port } = app.server.address() as AddressInfo;
  const ask = async (localAddress = '127.0.0.1', method = 'GET'): Promise<Socket> => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.pause().write(`${method} / HTTP/1.1\r\nhost: x\r\n\r\n`);
    return socket;
  };
  const connections = (): Promise<number> =>
    new Promise((resolve) => app.server.getConnections((_, count) => resolve(count)));
  return { url: `http://127.0.0.1:${port}`, ask, connections };
}

test('a client that reads nothing of its answer is cut, and one that reads it gets all of it', async () => {
  const { url, ask, connections } = await serve({ patienceMs: 300, leastBytesPerSec: 1_000 }, 40);
  await ask();
  const read = await (await fetch(url)).arrayBuffer();
  expect(read.byteLength).toBe(40 * megabyte);
  await eventually(async () => expect(await connections()).toBeLessThan(2));
});

test('a client that reads less than the least rate is cut, however often it reads', async () => {
  const { ask, connections } = await serve({ patienceMs: 500, leastBytesPerSec: 100 * megabyte }, 100);
  const socket = await ask();
  const timer = setInterval(() => void socket.read(1_000), 5);
  onTestFinished(() => clearInterval(timer));
  await eventually(async () => expect(await connections()).toBe(0));
  expect(socket.bytesRead).toBeLessThan(100 * megabyte);
});

test('with a least rate of 0 a client that reads nothing is not cut while another app cuts one', async () => {
  const [lenient, strict] = [
    await serve({ patienceMs: 100, leastBytesPerSec: 0 }, 40),
    await serve({ patienceMs: 300, leastBytesPerSec: 1_000 }, 40),
  ];
  await lenient.ask();
  await strict.ask();
  await eventually(async () => expect(await strict.connections()).toBe(0));
  expect(await lenient.connections()).toBe(1);
});

test('of the answers to other requests than GET that a client does not read the oldest is cut, and those of others are not', async () => {
  const { ask, connections } = await serve({ maxBytesOfClient: 100 * megabyte }, 40);
  await ask('127.0.0.2', 'POST');
  for (let nth = 0; nth < 5; nth++) await ask('127.0.0.3', 'POST');
  // two answers of 40 MB stay of the one, and the other's
  await eventually(async () => expect(await connections()).toBe(3));
});

test('a client that does not read its long answers gets 429 for a further GET, and loses none of them', async () => {
  const { ask, url } = await serve({ maxBytesOfClient: 100 * megabyte }, 40);
  const statusOf = async (path = ''): Promise<number> => {
    const { status, body: unread } = await fetch(url + path);
    await unread?.cancel();
    return status;
  };
  const held = [await ask(), await ask()];
  await eventually(async () => expect(await statusOf()).toBe(429));
  expect(await statusOf('/none')).toBe(404);
  for (const answer of held) {
    answer.resume();
    await eventually(() => expect(answer.bytesRead).toBeGreaterThan(40 * megabyte));
  }
  await eventually(async () => expect(await statusOf()).toBe(200));
});

test('where all clients together read too little, the oldest answer of the one that holds most is cut', async () => {
  const { ask, connections } = await serve({ maxBytes: 170 * megabyte }, 40);
  const few = await ask('127.0.0.2');
  const many = [await ask('127.0.0.3'), await ask('127.0.0.3'), await ask('127.0.0.3')];
  await ask('127.0.0.4');
  await eventually(async () => expect(await connections()).toBe(4));
  few.resume();
  await eventually(() => expect(few.bytesRead).toBeGreaterThan(40 * megabyte));
  many[0]?.resume();
  await eventually(() => expect(many[0]?.destroyed).toBe(true));
});

test('a long text comes whole, with its length in bytes', async () => {
  const { url } = await serve({}, 1);
  const answer = await fetch(`${url}/text`);
  expect(answer.headers.get('content-length')).toBe('200000');
  expect(await answer.text()).toBe('ä'.repeat(100_000));
});

test('an answer that lasts too long is ended, however it is read', async () => {
  const server = http.createServer((_, response) => {
    endInTime(response, 400);
    const drip = setInterval(() => response.write('x'), 20);
    response.once('close', () => clearInterval(drip));
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  client.resume().write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  if (!response.destroyed) await once(response, 'close');
  expect(response.writableFinished).toBe(false);
});
