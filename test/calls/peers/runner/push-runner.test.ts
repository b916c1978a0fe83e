import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, expect, test, onTestFinished } from 'vitest';
import {
  createPushRunner,
  type PushRunner,
  type PushRunnerOptions,
} from '../../../../src/calls/peers/runner/push-runner.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { freePort } from '../../../../src/devnet/ports.ts';

/** What it returns is not waited for. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

async function serve(listener: Listener, options?: Partial<PushRunnerOptions>): Promise<PushRunner> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return connect(port, options);
}

function connect(port: number | undefined, options?: Partial<PushRunnerOptions>): PushRunner {
  const url = `http://127.0.0.1:${port}/calls?a=b`;
  const runner = createPushRunner({ url, timeoutMs: 20_000, maxResultBytes: 1000, ...options });
  onTestFinished(() => runner.close());
  return runner;
}

const call = {
  headers: { 'webhook-id': '7' },
  body: Buffer.from([0, 255, 10, 13]),
  contentType: 'image/png',
};

describe('a call', () => {
  test('carries the bytes untouched, its headers and its content type', async () => {
    const seen: unknown[] = [];
    const runner = await serve(async (request, response) => {
      const { method, url, headers } = request;
      const body = Buffer.concat(await request.toArray());
      seen.push([
        method,
        url,
        headers['webhook-id'],
        headers['content-type'],
        headers['content-length'],
        body,
      ]);
      response.end();
    });
    await runner.push(call);
    await runner.push({ headers: {}, body: Buffer.alloc(0) });
    expect(seen).toEqual([
      ['POST', '/calls?a=b', '7', 'image/png', '4', call.body],
      ['POST', '/calls?a=b', undefined, undefined, '0', Buffer.alloc(0)],
    ]);
  });

  test('is completed by a 2xx, whose body is the result', async () => {
    const runner = await serve((_, response) => {
      response.writeHead(201, { 'content-type': 'text/plain; charset=utf-8' }).end('done');
    });
    expect(await runner.push(call)).toEqual({
      kind: 'completed',
      status: 201,
      contentType: 'text/plain; charset=utf-8',
      result: Buffer.from('done'),
      resultOmitted: false,
    });
  });

  test.each([['a'.repeat(201)], ['text/plain\u00e9'], [['text/plain', 'text/html']]])(
    'is completed without a content type that is not fit to store: %j',
    async (type) => {
      const runner = await serve((_, response) => response.setHeader('content-type', type).end());
      const answer = await runner.push(call);
      expect(answer).toMatchObject({ kind: 'completed', status: 200, resultOmitted: false });
      expect(answer).not.toHaveProperty('contentType');
    },
  );

  test.each([
    ['announced', (length: number) => ({ 'content-length': length })],
    ['streamed', () => ({})],
  ])('is completed without a result that is over the cap (%s)', async (_, headersOf) => {
    const result = Buffer.alloc(1001);
    const runner = await serve((_request, response) => {
      response.writeHead(200, { ...headersOf(result.length), 'content-type': 'a/b' });
      response.write(result.subarray(0, 500));
      response.end(result.subarray(500));
    });
    expect(await runner.push(call)).toEqual({
      kind: 'completed',
      status: 200,
      contentType: 'a/b',
      result: Buffer.alloc(0),
      resultOmitted: true,
    });
  });
});

describe('an answer of', () => {
  test.each([
    [429, { kind: 'retry', reason: 'status_429', error: 'status 429: why' }],
    [500, { kind: 'retry', reason: 'status_500', error: 'status 500: why' }],
    [503, { kind: 'busy', reason: 'status_503', error: 'status 503: why' }],
    [599, { kind: 'retry', reason: 'status_599', error: 'status 599: why' }],
    [410, { kind: 'retry', reason: 'status_410', error: 'status 410: why' }],
    [400, { kind: 'dead', reason: 'status_400', error: 'status 400: why' }],
    [404, { kind: 'dead', reason: 'status_404', error: 'status 404: why' }],
    [408, { kind: 'retry', reason: 'status_408', error: 'status 408: why' }],
    [425, { kind: 'retry', reason: 'status_425', error: 'status 425: why' }],
    [422, { kind: 'dead', reason: 'status_422', error: 'status 422: why' }],
  ])('%i', async (status, expected) => {
    const runner = await serve((_, response) => response.writeHead(status, { location: '/' }).end('why'));
    expect(await runner.push(call)).toEqual(expected);
  });

  test.each([[301], [302], [304], [307], [308]])('%i is not followed, and says so', async (status) => {
    const runner = await serve((_, response) => response.writeHead(status, { location: '/' }).end());
    const error = `status ${status}: redirects are not followed. Set the runner's url to the address that answers itself.`;
    expect(await runner.push(call)).toEqual({ kind: 'retry', reason: `status_${status}`, error });
  });

  test('a refusal is decided only by its status, even if its body is incomplete', async () => {
    const endless = await serve((_, response) => response.writeHead(400).end(Buffer.alloc(5000)));
    expect(await endless.push(call)).toEqual({ kind: 'dead', reason: 'status_400', error: 'status 400' });
    const deadlines = holdDeadlines();
    const begun = Promise.withResolvers<void>();
    const stuck = await serve((_, response) => response.writeHead(410).write('x', () => begun.resolve()), {
      timeoutMs: 60_000,
    });
    const answering = stuck.push(call);
    await begun.promise;
    await deadlines.end();
    expect(await answering).toEqual({ kind: 'retry', reason: 'status_410', error: 'status 410' });
    const cut = await serve((_, response) => {
      response.writeHead(503, { 'retry-after': '2', 'content-length': 9 });
      response.write('x', () => response.destroy());
    });
    expect(await cut.push(call)).toEqual({
      kind: 'busy',
      reason: 'status_503',
      retryAfterMs: 2000,
      error: 'status 503',
    });
  });
});

test('a 503 by which older versions of the runner library pass on that a handler asks for another try is a failed attempt, any other is not an attempt', async () => {
  const answers = [
    '{"error":"the model is loading","code":"retry_later"}',
    '{"error":"the runner is busy","code":"runner_full"}',
    '{"error":"said \\"code\\":\\"retry_later\\"}","code":"runner_stopping"}',
  ];
  const runner = await serve((_, response) =>
    response.writeHead(503, { 'retry-after': '30' }).end(answers.shift()),
  );
  const kinds = [await runner.push(call), await runner.push(call), await runner.push(call)];
  expect(kinds).toMatchObject([{ kind: 'retry', retryAfterMs: 30_000 }, { kind: 'busy' }, { kind: 'busy' }]);
});

describe('Retry-After', () => {
  const inAnHour = 3_600_000;
  test.each([
    ['0', 0],
    ['7', 7000],
    ['3600', inAnHour],
    ['3601', inAnHour],
    ['9999999999', inAnHour],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['Fri, 31 Dec 9999 23:59:59 GMT', inAnHour],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['2099', 2_099_000],
    ['2099-01-01', undefined],
    ['Thu, 99 Foo 2099 00:00:00 GMT', undefined],
    ['99999999999', undefined],
  ])('%s', async (header, retryAfterMs) => {
    const runner = await serve((_, response) => response.writeHead(429, { 'retry-after': header }).end());
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
    expect(await runner.push(call)).toMatchObject({ kind: 'retry', reason: 'status_429', ...wait });
  });

  test('as a date is counted from now', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    const runner = await serve((_, response) => response.writeHead(503, { 'retry-after': date }).end());
    const answer = await runner.push(call);
    const waitMs = answer.kind === 'busy' ? (answer.retryAfterMs ?? 0) : 0;
    expect(waitMs).toBeGreaterThan(30_000);
    expect(waitMs).toBeLessThanOrEqual(60_000);
  });
});

describe('a runner that', () => {
  test('hangs is tried again', async () => {
    const silent = await serve(() => undefined, { timeoutMs: 30 });
    expect(await silent.push(call)).toMatchObject({
      kind: 'retry',
      reason: 'timeout',
      error: expect.any(String),
    });
    const stuck = await serve((_, response) => response.write('half'), { timeoutMs: 50 });
    expect(await stuck.push(call)).toMatchObject({
      kind: 'retry',
      reason: 'timeout',
      error: expect.any(String),
    });
    const hinting = await serve((_, response) => response.writeProcessing(), { timeoutMs: 500 });
    expect(await hinting.push(call)).toMatchObject({
      kind: 'retry',
      reason: 'timeout',
      error: expect.any(String),
    });
  });

  test('hangs up, even within its result, is tried again', async () => {
    const closing = await serve((request) => request.socket.destroy());
    expect(await closing.push(call)).toMatchObject({
      kind: 'retry',
      reason: 'connection',
      error: expect.any(String),
    });
    const cut = await serve((_, response) => response.write('half', () => response.destroy()));
    expect(await cut.push(call)).toMatchObject({
      kind: 'retry',
      reason: 'connection',
      error: expect.any(String),
    });
  });

  test('is not there is tried again', async () => {
    const port = await freePort();
    expect(await connect(port).push(call)).toMatchObject({
      kind: 'retry',
      reason: 'connection',
      error: expect.any(String),
    });
  });

  test('cannot be sent our own headers gets no second try', async () => {
    const runner = await serve((_, response) => response.end());
    const answer = await runner.push({ ...call, headers: { 'x-net-caller': 'a\nb' } });
    expect(answer).toMatchObject({ kind: 'dead', reason: 'invalid_request' });
  });
});
