import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { Webhook as Library } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createWebhook, type Webhook, type WebhookOptions } from '../../../../src/base/peers/http/webhook.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { freePort } from '../../../../src/devnet/ports.ts';

/** What it returns is not waited for. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

async function serve(listener: Listener, options?: Partial<WebhookOptions>): Promise<Webhook> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close().closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return connect(port, options);
}

function connect(port: number | undefined, options?: Partial<WebhookOptions>): Webhook {
  const webhook = createWebhook({
    url: `http://127.0.0.1:${port}/hook?key=1`,
    timeoutMs: 20_000,
    ...options,
  });
  onTestFinished(() => webhook.close());
  return webhook;
}

const nowSecs = Math.floor(Date.now() / 1000);
const message = { id: 'unresolved-0x12ab', timestampSecs: nowSecs, body: '{"sum":"5 €"}' };
const secret = 'a secret of the operator';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

function seeing(seen: Seen[]): Listener {
  return async (request, response) => {
    const { method, url, headers } = request;
    seen.push({ method, url, headers, body: Buffer.concat(await request.toArray()) });
    response.writeHead(204).end();
  };
}

function library(key: string): Library {
  return new Library(Buffer.from(key, 'utf8'), { format: 'raw' });
}

/** Answers with a body that has no end. */
function endless(status: number): Listener {
  const chunk = Buffer.alloc(40_000);
  return (_, response) => {
    response.writeHead(status);
    const pour = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', pour);
    pour();
  };
}

describe('a message', () => {
  test('is one POST of JSON, with its id and time', async () => {
    const seen: Seen[] = [];
    const webhook = await serve(seeing(seen));
    expect(await webhook.send(message)).toEqual({ kind: 'delivered' });
    expect(seen).toMatchObject([{ method: 'POST', url: '/hook?key=1', body: Buffer.from(message.body) }]);
    expect(seen[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': message.id,
      'webhook-timestamp': String(nowSecs),
    });
    expect(seen[0]?.headers).not.toHaveProperty('webhook-signature');
  });

  test('is signed where there is a secret, as the Standard Webhooks library checks it', async () => {
    const seen: Seen[] = [];
    const webhook = await serve(seeing(seen), { secret });
    expect(await webhook.send(message)).toEqual({ kind: 'delivered' });
    const headers = Object.fromEntries(
      Object.entries(seen[0]?.headers ?? {}).map(([name, value]) => [name, String(value)]),
    );
    const body = seen[0]?.body ?? Buffer.alloc(0);
    expect(library(secret).verify(body, headers)).toEqual({ sum: '5 €' });
    expect(() => library('another secret').verify(body, headers)).toThrow('No matching signature');
  });

  test.each([
    ['an id with a dot', { id: 'a.b' }],
    ['no id', { id: '' }],
    ['a time that is none', { timestampSecs: 1.5 }],
  ])('is not signed with %s', async (_, change) => {
    const seen: Seen[] = [];
    const webhook = await serve(seeing(seen), { secret });
    await expect(webhook.send({ ...message, ...change })).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
  });
});

describe('a receiver that', () => {
  test.each([200, 201, 204, 299])('answers %i has it', async (status) => {
    const webhook = await serve((_, response) => response.writeHead(status).end());
    expect(await webhook.send(message)).toEqual({ kind: 'delivered' });
  });

  test.each([301, 307, 400, 401, 410, 429, 500, 503])('answers %i does not', async (status) => {
    let requests = 0;
    const webhook = await serve((_, response) => {
      requests += 1;
      response.writeHead(status, { location: '/elsewhere' }).end('why');
    });
    expect(await webhook.send(message)).toEqual({ kind: 'failed', cause: `status_${status}` });
    expect(requests).toBe(1);
  });

  test('answers without end, or stops in its answer, is judged by its status', async () => {
    expect(await (await serve(endless(200))).send(message)).toEqual({ kind: 'delivered' });
    expect(await (await serve(endless(400))).send(message)).toEqual({ kind: 'failed', cause: 'status_400' });
    const deadlines = holdDeadlines();
    const begun = Promise.withResolvers<void>();
    const stuck = await serve((_, response) => response.write('half', () => begun.resolve()), {
      timeoutMs: 60_000,
    });
    const sending = stuck.send(message);
    await begun.promise;
    await deadlines.end();
    expect(await sending).toEqual({ kind: 'delivered' });
  });

  test('hangs, hangs up or is not there does not have it, as far as is known', async () => {
    const hanging = await serve(() => undefined, { timeoutMs: 30 });
    expect(await hanging.send(message)).toEqual({ kind: 'failed', cause: 'timeout' });
    const closing = await serve((request) => request.socket.destroy());
    expect(await closing.send(message)).toEqual({ kind: 'failed', cause: 'connection' });
    const port = await freePort();
    expect(await connect(port).send(message)).toEqual({ kind: 'failed', cause: 'connection' });
  });

  test('is asked nothing more after the close', async () => {
    const webhook = await serve((_, response) => response.end());
    await webhook.close();
    expect(await webhook.send(message)).toEqual({ kind: 'failed', cause: 'closed' });
  });
});
