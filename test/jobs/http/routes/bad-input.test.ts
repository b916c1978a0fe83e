import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { useChain } from '../../../support/devnet.ts';
import { eventually } from '../../../support/wait.ts';
import { eventTypes, json, signed, startApi, startRouteGateway, weather } from './support.ts';

const chain = useChain();
const city = '/weather/paris';
/** The status of the answer to these bytes. */
async function rawStatus(url: string, text: string): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port) });
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer.toString())?.[1]);
}

const upfront = (upstream: string, more = '') => weather(upstream, `flow = "upfront"\n${more}`);

test.each([
  ['has an empty segment', '//weather/paris'],
  ['has a dot segment', '/weather/./paris'],
  ['goes up', '/weather/x/../paris'],
  ['has an encoded slash', '/weather/a%2Fb'],
  ['has an encoded dot', '/weather/%2e%2e'],
  ['has an encoded percent sign', '/weather/%252e'],
  ['has a backslash', '/weather/a\\b'],
  ['has parameters of a segment', '/weather/..;/paris'],
])('a path that %s is refused, or is no route, and never reaches the upstream', async (_what, path) => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const payment = await signed(gateway, city);
  const fields = Object.entries(payment).map(([name, value]) => `${name}: ${value}\r\n`);
  const status = await rawStatus(
    gateway.routesUrl,
    `GET ${path} HTTP/1.1\r\nhost: x\r\n${fields.join('')}\r\n`,
  );
  expect(status).toBeOneOf([400, 404]);
  expect(api.asked).toHaveLength(0);
});

test('a request with two lengths is refused by the parser, and never reaches the upstream', async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const head = `POST ${city} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`;
  expect(await rawStatus(gateway.routesUrl, head)).toBe(400);
  expect(api.asked).toHaveLength(0);
});

test('an upgrade is refused before payment', async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const head = `GET ${city} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`;
  expect(await rawStatus(gateway.routesUrl, head)).toBe(426);
});

test('a route is sold on its own path alone, and no other path of its listener exists', async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  expect(await gateway.post('/x402/jobs/7/0')).toMatchObject({
    status: 404,
    json: { code: 'job_not_found' },
  });
  expect((await gateway.paid.get('/x402/stats')).status).toBe(404);
  expect((await gateway.paid.get('/rain')).status).toBe(404);
});

test('an unpaid HEAD of a route gets the offer, also where its path has a route for each method', async () => {
  const api = await startApi(json);
  const other = `[[routes]]\nservice_id = 7\njob_index = 1\nmethods = ["PUT"]\npath = "/weather/:town"\nupstream = "${api.url}"\nprice = "5 USD"\n`;
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes: weather(api.url) + other });
  const answer = await fetch(`${gateway.routesUrl}${city}`, { method: 'HEAD' });
  expect(answer.status).toBe(402);
  expect(answer.headers.get('payment-required')).not.toBeNull();
});

test('an upstream that cannot be reached five times in a row sells nothing more until it can be tried again', async () => {
  const api = await startApi(json);
  const dead = new URL(api.url);
  dead.port = '9';
  const gateway = await startRouteGateway({ chain, upstream: dead.origin });
  const payments = await Promise.all(Array.from({ length: 5 }, () => signed(gateway, city)));
  for (const payment of payments) expect((await gateway.paid.get(city, payment)).status).toBe(502);
  expect(await gateway.paid.get(city)).toMatchObject({ status: 503, json: { code: 'upstream_unavailable' } });
});

test("an upstream's own 402 reaches the client without an offer", async () => {
  const api = await startApi(
    (_asked, response) => void response.writeHead(402, { 'payment-required': 'e30=' }).end('pay me'),
  );
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes: upfront(api.url) });
  const answer = await gateway.paid.get(city, await signed(gateway, city));
  expect(answer).toMatchObject({ status: 402, text: 'pay me' });
  expect(answer.headers.get('payment-required')).toBeNull();
  expect(answer.headers.get('payment-response')).not.toBeNull();
});

test('redirects, cookies and headers that come several times reach the client; those of the gateway and of one connection do not', async () => {
  const api = await startApi((_asked, response) => {
    response.writeHead(302, {
      location: '/elsewhere',
      'set-cookie': ['a=1', 'tollbook.session_token=forged', 'b=2'],
      connection: 'keep-alive, x-hop',
      'x-hop': 'one connection',
    });
    response.end();
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const payment = await signed(gateway, city);
  const answer = await fetch(`${gateway.routesUrl}${city}`, { headers: payment, redirect: 'manual' });
  expect(answer.status).toBe(302);
  expect(answer.headers.get('location')).toBe('/elsewhere');
  expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  expect(answer.headers.get('x-hop')).toBeNull();
  expect(api.asked).toHaveLength(1);
});

test('a client that leaves a long answer may have it again twice; the third time counts as delivered', async () => {
  const api = await startApi((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    const send = (): void => {
      if (!response.destroyed) response.write(Buffer.alloc(262_144), () => setTimeout(send, 5));
    };
    send();
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes: upfront(api.url) });
  const payment = await signed(gateway, city);
  for (const left of [1, 2, 3]) {
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.routesUrl}${city}`, { headers: payment, signal: leaving.signal });
    expect(answer.status).toBe(200);
    let bytes = 0;
    for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > 2_000_000) break;
    }
    leaving.abort();
    const type = left < 3 ? 'delivery_failed' : 'completed';
    await eventually(async () =>
      expect((await eventTypes(gateway)).filter((one) => one === type)).toHaveLength(left < 3 ? left : 1),
    );
  }
  expect(await gateway.paid.get(city, payment)).toMatchObject({
    status: 410,
    json: { code: 'answer_not_kept' },
  });
});

test('a long answer is passed on in the memory of a few pieces', async () => {
  const piece = Buffer.alloc(1_048_576, 7);
  const count = 300;
  const api = await startApi(async (_asked, response) => {
    response.writeHead(200, { 'content-length': String(piece.length * count) });
    for (let sent = 0; sent < count; sent++)
      if (!response.write(piece)) await new Promise<void>((resolve) => void response.once('drain', resolve));
    response.end();
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes: upfront(api.url) });
  const answer = await fetch(`${gateway.routesUrl}${city}`, { headers: await signed(gateway, city) });
  let bytes = 0;
  let most = 0;
  const before = process.memoryUsage().rss;
  for await (const part of answer.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    // the gateway gets ahead of a slow reader by its own buffers alone
    if (bytes % 50_000_000 < part.length) await sleep(20);
    most = Math.max(most, process.memoryUsage().rss - before);
  }
  expect(bytes).toBe(piece.length * count);
  expect(most).toBeLessThan(150_000_000);
});

test.each(['/Weather/Paris', '/weather/paris/'])(
  '%s is sold as the path that its upstream may take for the same, and not passed on free',
  async (target) => {
    const api = await startApi(json);
    const listener = `free = { "/*" = "${api.url}" }`;
    const gateway = await startRouteGateway({ chain, upstream: api.url, listener });
    expect((await gateway.paid.get(target)).status).toBe(402);
    expect(api.asked).toHaveLength(0);
    expect(await gateway.paid.get('/other')).toMatchObject({ status: 200, json: { url: '/other' } });
  },
);

test('bodies for free paths take no memory once they are answered', async () => {
  const api = await startApi(json);
  const listener = `free = { "/*" = "${api.url}" }`;
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    listener,
    constants: { limits: { maxBodyMemoryBytes: 4_000_000 } },
  });
  const body = 'x'.repeat(500_000);
  for (let sent = 0; sent < 12; sent++)
    expect((await gateway.paid.post('/other', { body })).status).toBe(200);
});

test('one payer has at most four requests under way whose upstream answers first, however many come together', async () => {
  const api = await startApi(async (...asked) => {
    await sleep(500);
    await json(...asked);
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const payments = await Promise.all(Array.from({ length: 12 }, () => signed(gateway, city)));
  const answers = await Promise.all(payments.map((payment) => gateway.paid.get(city, payment)));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(4);
  expect(statuses.filter((status) => status === 503)).toHaveLength(8);
  expect(api.asked).toHaveLength(4);
});

test('a stream that fails before its first byte is answered as a failure that can be repeated', async () => {
  const api = await startApi((_asked, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).flushHeaders();
    setTimeout(() => response.destroy(), 50);
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes: upfront(api.url) });
  const answer = await gateway.paid.get(city, await signed(gateway, city));
  expect(answer).toMatchObject({ status: 502, json: { code: 'upstream_failed' } });
  expect(answer.headers.get('content-encoding')).toBeNull();
});

test('shared caches get no leave to keep what was paid for, and headers that come several times all arrive', async () => {
  const api = await startApi((_asked, response) => {
    response.writeHead(200, [
      ['cache-control', 'public, max-age=60'],
      ['cache-control', 'private="x-one"'],
      ['cdn-cache-control', 'max-age=600'],
      ['surrogate-control', 'max-age=600'],
      ['vary', 'accept'],
      ['vary', 'origin'],
    ] as never);
    response.end('x');
  });
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const { headers } = await gateway.paid.get(city, await signed(gateway, city));
  expect(headers.get('cache-control')).toBe('private, max-age=60, private="x-one"');
  expect(headers.get('cdn-cache-control')).toBeNull();
  expect(headers.get('surrogate-control')).toBeNull();
  expect(headers.get('vary')).toBe('accept, origin');
});

test('metadata in another spelling does not reach the upstream', async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url });
  const forged = { X_NET_Call_Id: '1', X_Forwarded_For: '10.0.0.1', Webhook_Signature: 'v1,x' };
  await gateway.paid.get(city, { ...(await signed(gateway, city)), ...forged });
  expect(Object.keys(api.asked[0]!.headers).filter((name) => name.includes('_'))).toEqual([]);
});
