import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, type Server } from 'node:http';
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net';
import { describe, expect, test, onTestFinished } from 'vitest';
import { createHttpPool, type HttpPool, type HttpRequest } from '../../../../src/base/peers/http/http.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { eventually } from '../../../support/wait.ts';

async function listen(server: Server | TcpServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return port ?? 0;
}

/** What it returns is not waited for. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

async function serve(listener: Listener): Promise<string> {
  const server = createServer((request, response) => void listener(request, response));
  const port = await listen(server);
  onTestFinished(() => server.closeAllConnections());
  return `http://127.0.0.1:${port}`;
}

/** A peer below HTTP: what it does with its socket is up to the test. */
async function serveTcp(onSocket: (socket: Socket) => void): Promise<number> {
  return listen(
    createTcpServer((socket) => {
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined);
      onSocket(socket);
    }),
  );
}

function open(url: string, connections?: number): HttpPool {
  const pool = createHttpPool(url, { connections });
  onTestFinished(() => pool.close());
  return pool;
}

const get: HttpRequest = { method: 'GET', path: '/', timeoutMs: 20_000, maxResponseBytes: 1000 };
const post: HttpRequest = { ...get, method: 'POST', body: '{"a":1}' };

describe('an exchange', () => {
  test('gives status, headers and the whole body', async () => {
    const url = await serve((request, response) => {
      request.on('data', (chunk: Buffer) => response.write(chunk));
      request.on('end', () => response.end(request.headers['x-mine']));
    });
    const answer = await open(url).request({ ...post, headers: { 'x-mine': '!' } });
    expect(answer).toMatchObject({ kind: 'response', status: 200, body: Buffer.from('{"a":1}!') });
  });

  test('keeps connections alive, and survives a peer that closes them between exchanges', async () => {
    let connections = 0;
    const server = createServer((_, response) => response.end('ok'));
    server.on('connection', () => (connections += 1));
    const pool = open(`http://127.0.0.1:${await listen(server)}`);
    for (let round = 0; round < 10; round += 1)
      expect(await pool.request(post)).toMatchObject({ status: 200 });
    // Two: undici looks at a used socket for one turn before it writes again, and the pool opens another meanwhile. One or two more
    // if this process stood still for longer than a connection may be idle; ten if none was kept.
    expect(connections).toBeLessThan(5);
    server.closeIdleConnections();
    await eventually(async () => expect(await pool.request(post)).toMatchObject({ status: 200 }));
    expect(connections).toBeGreaterThan(1);
  });

  test('follows no redirect', async () => {
    const paths: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect(await open(url).request(get)).toMatchObject({ kind: 'response', status: 307 });
    expect(paths).toEqual(['/']);
  });

  test('reads past informational answers', async () => {
    const url = await serve((_, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.end('late');
    });
    expect(await open(url).request(get)).toMatchObject({ status: 200, body: Buffer.from('late') });
  });
});

describe('one deadline bounds', () => {
  test('a peer that never answers: the request was sent', async () => {
    const deadlines = holdDeadlines();
    const asked = Promise.withResolvers<void>();
    const url = await serve(() => asked.resolve());
    const answering = open(url).request({ ...post, timeoutMs: 60_000 });
    await asked.promise;
    expect(await deadlines.end()).toEqual([60_000]);
    const answer = await answering;
    expect(answer).toMatchObject({ kind: 'failed', cause: 'timeout', sent: true });
    expect(answer).not.toHaveProperty('head');
  });

  test('a body that trickles without end, and closes its connection', async () => {
    const deadlines = holdDeadlines();
    const begun = Promise.withResolvers<void>();
    let dropped = false;
    const url = await serve((_, response) => {
      const drip = setInterval(() => response.write('.', () => begun.resolve()), 5);
      response.on('close', () => {
        clearInterval(drip);
        dropped = true;
      });
    });
    const answering = open(url).request({ ...post, timeoutMs: 60_000 });
    await begun.promise;
    await deadlines.end();
    expect(await answering).toMatchObject({
      kind: 'failed',
      cause: 'timeout',
      sent: true,
      head: { status: 200 },
    });
    await eventually(() => expect(dropped).toBe(true));
  });

  test('headers that trickle without end', async () => {
    const deadlines = holdDeadlines();
    const asked = Promise.withResolvers<void>();
    const port = await serveTcp((socket) => {
      socket.once('data', () => asked.resolve());
      socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => socket.write('X-A: b\r\n'), 5);
      socket.on('close', () => clearInterval(drip));
    });
    const answering = open(`http://127.0.0.1:${port}`).request({ ...post, timeoutMs: 60_000 });
    await asked.promise;
    await deadlines.end();
    expect(await answering).toMatchObject({ kind: 'failed', cause: 'timeout', sent: true });
  });

  test('a handshake that never ends: nothing was sent', async () => {
    const port = await serveTcp(() => undefined);
    const answer = await open(`https://127.0.0.1:${port}`).request({ ...post, timeoutMs: 30 });
    expect(answer).toMatchObject({ kind: 'failed', cause: 'timeout', sent: false });
  });

  test('a place in the queue: what timed out there is never sent later', async () => {
    const paths: (string | undefined)[] = [];
    const held = Promise.withResolvers<void>();
    const url = await serve(async (request, response) => {
      paths.push(request.url);
      if (request.url === '/first') await held.promise;
      response.end();
    });
    const pool = open(url, 1);
    const first = pool.request({ ...post, path: '/first' });
    await eventually(() => expect(paths).toHaveLength(1));
    const queued = await pool.request({ ...post, path: '/queued', timeoutMs: 20 });
    expect(queued).toMatchObject({ kind: 'failed', cause: 'timeout', sent: false });
    held.resolve();
    expect(await first).toMatchObject({ status: 200 });
    expect(await pool.request({ ...post, path: '/last' })).toMatchObject({ status: 200 });
    expect(paths).toEqual(['/first', '/last']);
  });
});

describe('a body over the cap', () => {
  test('is refused by its announced length', async () => {
    const url = await serve((_, response) => response.end(Buffer.alloc(1001)));
    const answer = await open(url).request(get);
    expect(answer).toMatchObject({
      kind: 'failed',
      cause: 'too_large',
      sent: true,
      head: { status: 200 },
    });
  });

  test('is cut off while it streams without an end', async () => {
    let dropped = false;
    const url = await serve((_, response) => {
      response.on('close', () => (dropped = true));
      response.on('error', () => undefined);
      response.on('drain', () => response.write(Buffer.alloc(100_000)));
      response.write(Buffer.alloc(100_000));
    });
    expect(await open(url).request(get)).toMatchObject({ kind: 'failed', cause: 'too_large' });
    await eventually(() => expect(dropped).toBe(true));
  });

  test('is accepted at exactly the cap', async () => {
    const url = await serve((_, response) => response.end(Buffer.alloc(1000)));
    expect(await open(url).request(get)).toMatchObject({ kind: 'response', status: 200 });
  });

  test('has its counterpart in headers', async () => {
    const url = await serve((_, response) => response.writeHead(200, { 'x-a': 'a'.repeat(40_000) }).end());
    expect(await open(url).request(get)).toMatchObject({
      kind: 'failed',
      cause: 'too_large',
      sent: true,
    });
  });
});

describe('a connection', () => {
  test('refused sends nothing', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    server.close();
    await once(server, 'close');
    const answer = await open(`http://127.0.0.1:${port}`).request(post);
    expect(answer).toMatchObject({ kind: 'failed', cause: 'connection', sent: false });
  });

  test('to a name that does not exist sends nothing', async () => {
    const answer = await open('http://unknown.invalid').request(post);
    expect(answer).toMatchObject({ kind: 'failed', sent: false });
  });

  test('to a peer that fails the TLS handshake sends nothing', async () => {
    const port = await serveTcp((socket) => socket.end('plain text'));
    const answer = await open(`https://127.0.0.1:${port}`).request(post);
    expect(answer).toMatchObject({ kind: 'failed', cause: 'connection', sent: false });
  });

  test.each([
    ['before the headers', ''],
    ['within the headers', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['within a counted body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"a'],
    ['within a chunked body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n'],
  ])('closed %s is a failure after sending, tried once', async (_, text) => {
    let requests = 0;
    const port = await serveTcp((socket) => {
      socket.once('data', () => {
        requests += 1;
        socket.end(text);
      });
    });
    const answer = await open(`http://127.0.0.1:${port}`).request(post);
    expect(answer).toMatchObject({ kind: 'failed', cause: 'connection', sent: true });
    expect(requests).toBe(1);
  });

  test('reset after the request is a failure after sending', async () => {
    const port = await serveTcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
    const answer = await open(`http://127.0.0.1:${port}`).request(post);
    expect(answer).toMatchObject({ kind: 'failed', cause: 'connection', sent: true });
  });

  test('that does not use HTTP is malformed', async () => {
    const port = await serveTcp((socket) => socket.once('data', () => socket.write('SSH-2.0-OpenSSH\r\n')));
    const answer = await open(`http://127.0.0.1:${port}`).request(post);
    expect(answer).toMatchObject({ kind: 'failed', cause: 'malformed', sent: true });
  });
});

describe('a pool', () => {
  test('tells an unsendable header as our own mistake', async () => {
    const url = await serve((_, response) => response.end());
    const answer = await open(url).request({ ...get, headers: { authorization: 'a\r\nb: c' } });
    expect(answer).toMatchObject({ kind: 'failed', cause: 'invalid_request', sent: false });
  });

  test('lets running exchanges finish when it closes, and refuses new ones', async () => {
    const seen = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const url = await serve(async (_, response) => {
      seen.resolve();
      await held.promise;
      response.end('done');
    });
    const pool = createHttpPool(url);
    const running = pool.request(post);
    await seen.promise;
    const closing = pool.close();
    expect(await pool.request(get)).toMatchObject({ kind: 'failed', cause: 'closed', sent: false });
    held.resolve();
    expect(await running).toMatchObject({ kind: 'response', body: Buffer.from('done') });
    await closing;
  });

  test('refuses a URL that is not http', () => {
    expect(() => createHttpPool('ws://127.0.0.1')).toThrow('Invalid URL');
    expect(() => createHttpPool('nonsense')).toThrow(TypeError);
  });
});
