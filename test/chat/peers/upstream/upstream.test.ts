import { once } from 'node:events';
import { createServer as createTcpServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { boundPort } from '../../../../src/devnet/ports.ts';
import { createUpstream } from '../../../../src/chat/peers/upstream/upstream.ts';
import { eventually } from '../../../support/wait.ts';
import {
  ask,
  askStream,
  bodyOf,
  cleanUp,
  connect,
  readAll,
  serve,
  startModel,
  streamBodyOf,
  streaming,
} from './support.ts';

describe('a whole answer', () => {
  test('comes byte for byte, with what it cost and how it ended', async () => {
    const { model, upstream } = await startModel();
    const answer = await ask(upstream, 'one two three');
    const direct = await fetch(`${model.url}/chat/completions`, {
      method: 'POST',
      body: bodyOf('one two three'),
    });
    expect(answer).toMatchObject({
      kind: 'completed',
      body: Buffer.from(await direct.arrayBuffer()),
      usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 0 },
      finishReason: 'stop',
      isFinished: true,
      written: 'one two three',
    });
    expect(answer.kind === 'completed' && answer.latencyMs >= answer.firstByteMs).toBe(true);
  });

  test('may be as long as the cap, and not a byte longer', async () => {
    const body = JSON.stringify({ choices: [{ message: { content: 'a'.repeat(900) } }] });
    const atCap = await serve((_, response) => response.end(body), { maxAnswerBytes: body.length });
    const overCap = await serve((_, response) => response.end(body), { maxAnswerBytes: body.length - 1 });
    expect(await ask(atCap, 'hello')).toMatchObject({ kind: 'completed' });
    expect(await ask(overCap, 'hello')).toMatchObject({ kind: 'failed', cause: 'too_large' });
  });

  test('is judged by its content where its label says little', async () => {
    const body = JSON.stringify({ choices: [{ message: { content: 'a' } }] });
    const upstream = await serve((_, response) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end(`\n\n${body}`),
    );
    expect(await ask(upstream, 'hello')).toMatchObject({
      kind: 'completed',
      body: Buffer.from(`\n\n${body}`),
    });
  });
});

describe('what goes up', () => {
  test('is the unchanged body, the key, and nothing that a caller could have sent', async () => {
    const { model, upstream } = await startModel({ key: 'upstream-key' });
    await ask(upstream, 'hello');
    await readAll(await askStream(upstream, 'hello'));
    const [whole, stream] = model.calls;
    expect(whole?.body).toBe(bodyOf('hello'));
    expect(stream?.body).toBe(streamBodyOf('hello'));
    expect(whole?.headers).toEqual({
      host: new URL(model.url).host,
      connection: 'keep-alive',
      authorization: 'Bearer upstream-key',
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'tollbook',
      'content-length': String(bodyOf('hello').length),
    });
    expect(stream?.headers.accept).toBe('text/event-stream');
  });

  test('goes to the path and query of the base URL, without a key if none is configured', async () => {
    const seen: unknown[] = [];
    const upstream = await serve(
      ({ method, url, headers }, response) => {
        seen.push(method, url, headers.authorization);
        response.end();
      },
      {},
      '/deep/v1/?api-version=2',
    );
    await ask(upstream, 'hello');
    expect(seen).toEqual(['POST', '/deep/v1/chat/completions?api-version=2', undefined]);
  });

  test('keeps its connection: a second is opened only while the first is looked at', async () => {
    const { model, upstream } = await startModel();
    for (let round = 0; round < 5; round += 1) {
      expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'completed' });
      expect((await readAll(await askStream(upstream, 'hello'))).ending.kind).toBe('completed');
    }
    expect(model.calls).toHaveLength(10);
    // more than two only if this process stood still for longer than a connection may be idle
    expect(new Set(model.calls.map(({ clientPort }) => clientPort)).size).toBeLessThan(5);
  });
});

describe('an upstream', () => {
  test('is busy with as many requests as it may have, until one ends', async () => {
    const { model, upstream } = await startModel({ maxConcurrent: 2 });
    const stream = streaming(await askStream(upstream, 'fault:stall_mid_stream'));
    const caller = new AbortController();
    const waiting = ask(upstream, 'fault:hang', caller.signal);
    expect(await ask(upstream, 'hello')).toEqual({ kind: 'busy' });
    await eventually(() => expect(model.calls).toHaveLength(2));
    stream.abort();
    expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'completed' });
    caller.abort();
    await waiting;
    expect(upstream.running).toBe(0);
    expect(model.calls).toHaveLength(3);
  });

  test('without a listener is unreachable', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = boundPort(server);
    server.close();
    await once(server, 'close');
    expect(await ask(connect(`http://127.0.0.1:${port}/v1`), 'hello')).toMatchObject({
      kind: 'failed',
      cause: 'unreachable',
    });
  });

  test('whose handshake never ends is given up', async () => {
    const server = createTcpServer((socket) => cleanUp(() => socket.destroy())).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUp(() => server.close());
    const upstream = connect(`https://127.0.0.1:${boundPort(server)}/v1`, { connectTimeoutMs: 50 });
    expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'failed', cause: 'connect_timeout' });
  });

  test('whose key no header can hold is never asked', async () => {
    const { model, upstream } = await startModel({ key: 'a\r\nb: c' });
    expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'failed', cause: 'invalid_request' });
    expect(model.calls).toEqual([]);
  });

  test('refuses by its status line, whatever body follows', async () => {
    const endless = await serve((_, response) => {
      response.on('drain', () => response.write(Buffer.alloc(100_000)));
      response.writeHead(422).write(Buffer.alloc(100_000));
    });
    expect(await ask(endless, 'hello')).toEqual({ kind: 'refused', status: 422, fault: 'request' });
    expect(endless.running).toBe(0);
  });

  test.each([
    ['0', 0],
    ['3', 3],
    ['9999999', 3600],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', undefined],
  ])('may ask for patience: %s', async (header, retryAfterSecs) => {
    const upstream = await serve((_, response) => response.writeHead(429, { 'retry-after': header }).end());
    expect({ retryAfterSecs: undefined, ...(await ask(upstream, 'hello')) }).toEqual({
      kind: 'refused',
      status: 429,
      fault: 'upstream',
      retryAfterSecs,
    });
  });

  test('that closes lets its streams end, and takes no more', async () => {
    const { upstream } = await startModel();
    const answer = await askStream(upstream, 'one two');
    const closing = upstream.close();
    expect(await ask(upstream, 'hello')).toMatchObject({ kind: 'failed', cause: 'closed' });
    expect((await readAll(answer)).ending).toMatchObject({ kind: 'completed', isTerminated: true });
    await closing;
  });

  test('has an http URL', () => {
    const limits = { connectTimeoutMs: 1, firstByteTimeoutMs: 1, idleTimeoutMs: 1, totalTimeoutMs: 1 };
    const create = (baseUrl: string) =>
      createUpstream({
        name: 'a',
        baseUrl,
        ...limits,
        maxConcurrent: 1,
        maxConcurrentFree: 1,
        stalledReaderTimeoutMs: 1,
        maxAnswerBytes: 1,
      });
    expect(() => create('ws://127.0.0.1')).toThrow('Invalid URL');
    expect(() => create('nonsense')).toThrow(TypeError);
  });
});
