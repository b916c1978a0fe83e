import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodePaymentResponseHeader } from '@x402/fetch';
import { expect, test } from 'vitest';
import type { ConstantChanges } from '../../../../src/base/config/constants.ts';
import { verifyCall } from '../../../../src/base/values/call-signature.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { logLines } from '../../../support/log-lines.ts';
import { header, offerOf, payer, signOffer } from '../../../support/payer.ts';
import { eventually } from '../../../support/wait.ts';
import {
  json,
  paidFetch,
  eventTypes,
  routeToken,
  signed,
  startApi,
  startRouteGateway,
  weather,
} from './support.ts';

const chain = useChain();
const city = '/weather/paris?units=c';
const cent = 10_000n;

const start = (upstream: string, constants: ConstantChanges = {}) =>
  startRouteGateway({ chain, upstream, routes: weather(upstream, 'flow = "upfront"'), constants });

test('an unmodified client gets the JSON of the upstream for a cent, its settlement and its receipt', async () => {
  const api = await startApi(json);
  const gateway = await start(api.url);
  const before = await chain.balance(payTo);
  const response = await paidFetch(`${gateway.routesUrl}${city}`);
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ url: city, sunny: true });
  expect((await chain.balance(payTo)) - before).toBe(cent);
  const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
  expect(settled).toMatchObject({ success: true, payer: payer.address.toLowerCase() });
  expect(response.headers.get('cache-control')).toBe('private');
  const receipt = /^<(.*)>; rel="payment-receipt"$/.exec(response.headers.get('link') ?? '')?.[1] ?? '';
  expect(await (await fetch(receipt)).json()).toMatchObject({ state: 'completed', paid: true });
  expect(await eventTypes(gateway)).toEqual(
    expect.arrayContaining(['payment_settled', 'enqueued', 'delivered', 'completed']),
  );
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, completed: 1 });
});

test('the upstream gets the path, the query and the body as they came, and no payment', async () => {
  const api = await startApi(json);
  const gateway = await start(`${api.url}/v2`);
  const response = await paidFetch(`${gateway.routesUrl}${city}`, {
    method: 'POST',
    body: 'rain?',
    headers: { cookie: 'a=1; tollbook.session_token=stolen; b=2', 'x-net-caller': '0xabc', 'x-own': 'kept' },
  });
  expect(response.status).toBe(200);
  const [asked] = api.asked;
  expect(asked).toMatchObject({ method: 'POST', url: `/v2${city}`, body: 'rain?' });
  const { headers } = asked!;
  expect(headers).toMatchObject({ cookie: 'a=1; b=2', 'x-own': 'kept', 'x-net-service-id': '7' });
  expect(headers).not.toHaveProperty('payment-signature');
  expect(headers).not.toHaveProperty('x-net-caller');
  expect(headers.host).toBe(new URL(api.url).host);
  expect(
    verifyCall({ secret: routeToken, headers, body: Buffer.from('rain?'), nowSecs: Date.now() / 1_000 }),
  ).toMatchObject({ ok: true });
});

test('the same payment sent again gets the stored answer, and the upstream is asked once', async () => {
  const api = await startApi(json);
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  const [first, second] = await Promise.all([
    gateway.paid.get(city, payment),
    gateway.paid.get(city, payment),
  ]);
  const third = await gateway.paid.get(city, payment);
  for (const answer of [first, second, third])
    expect(answer).toMatchObject({ status: 200, json: { sunny: true } });
  expect(third.headers.get('idempotent-replayed')).toBe('true');
  expect(api.asked).toHaveLength(1);
});

test('a payment is bound to its method, its path with its query, and its body', async () => {
  const api = await startApi(json);
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  expect((await gateway.paid.get(city, payment)).status).toBe(200);
  expect((await gateway.paid.get('/weather/rome', payment)).json.code).toBe('payment_replay');
  expect((await gateway.paid.get('/weather/paris?units=f', payment)).json.code).toBe('payment_replay');
  expect((await gateway.paid.post(city, { headers: payment })).json.code).toBe('payment_replay');
  expect(api.asked).toHaveLength(1);
});

test('an upstream that fails is asked again for the same payment, which is charged once', async () => {
  const api = await startApi((_asked, response) => void response.destroy());
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  const before = await chain.balance(payTo);
  const failed = await gateway.paid.get(city, payment);
  expect(failed).toMatchObject({ status: 502, json: { code: 'upstream_failed', reason: 'upstream_reset' } });
  api.answering = json;
  expect(await gateway.paid.get(city, payment)).toMatchObject({ status: 200, json: { sunny: true } });
  expect((await chain.balance(payTo)) - before).toBe(cent);
  const keys = api.asked.map(({ headers }) => headers['x-net-idempotency-key']);
  expect(new Set(keys).size).toBe(1);
  expect(api.asked.map(({ headers }) => headers['x-net-attempt'])).toEqual(['1', '2']);
});

test('an answer of 500 and above is passed on in its own words, and does not use the payment up', async () => {
  const api = await startApi((_asked, response) => void response.writeHead(503).end('overloaded'));
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  expect(await gateway.paid.get(city, payment)).toMatchObject({ status: 503, text: 'overloaded' });
  api.answering = json;
  expect((await gateway.paid.get(city, payment)).status).toBe(200);
});

test('where no repetition comes in time, the refund of a failed request is due', async () => {
  const api = await startApi((_asked, response) => void response.destroy());
  const gateway = await start(api.url, { routes: { retrySecs: 1 } });
  const payment = await signed(gateway, city);
  expect((await gateway.paid.get(city, payment)).status).toBe(502);
  await eventually(async () =>
    expect(await gateway.paid.get(city, payment)).toMatchObject({
      status: 410,
      json: { code: 'refund_due' },
    }),
  );
  expect(await eventTypes(gateway)).toContain('dead_lettered');
});

test('a stream is passed on as it comes, and its completion is on record before its end', async () => {
  const api = await startApi(async (_asked, response) => {
    response.setHeader('content-type', 'text/event-stream');
    for (const word of ['one', 'two', 'three']) {
      response.write(`data: ${word}\n\n`);
      await sleep(150);
    }
    response.end();
  });
  const gateway = await start(api.url);
  const response = await paidFetch(`${gateway.routesUrl}${city}`);
  const arrivals: number[] = [];
  let text = '';
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    arrivals.push(performance.now());
    text += Buffer.from(piece).toString();
  }
  expect(text).toBe('data: one\n\ndata: two\n\ndata: three\n\n');
  expect(arrivals.at(-1)! - arrivals[0]!).toBeGreaterThan(200);
  expect(await eventTypes(gateway)).toContain('completed');
});

test("the trailers of a stream follow it, without those that say how it is read or that are the gateway's", async () => {
  const api = await startApi((_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', trailer: 'x-sum' }).write('words');
    const foreign = { 'set-cookie': 'a=1', 'content-type': 'text/html', 'payment-response': 'e30=' };
    response.addTrailers({ 'x-sum': '5', 'content-digest': 'sha-256=:x:', ...foreign });
    response.end();
  });
  const gateway = await start(api.url);
  const asking = request(`${gateway.routesUrl}${city}`, { headers: await signed(gateway, city) }).end();
  const [answer] = (await once(asking, 'response')) as [IncomingMessage];
  expect(Buffer.concat(await answer.toArray()).toString()).toBe('words');
  expect(answer.trailers).toEqual({ 'x-sum': '5', 'content-digest': 'sha-256=:x:' });
});

test('an answer that breaks off in its middle breaks off for the client, who gets it whole by sending the payment again', async () => {
  const whole = 'x'.repeat(300_000);
  const api = await startApi((_asked, response) => {
    response.writeHead(200, { 'content-length': String(whole.length) });
    response.write(whole.slice(0, 200_000), () => response.destroy());
  });
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  await expect(gateway.paid.get(city, payment)).rejects.toThrow('terminated');
  api.answering = (_asked, response) => void response.end(whole);
  expect((await gateway.paid.get(city, payment)).text).toBe(whole);
  expect(await eventTypes(gateway)).toContain('delivery_failed');
});

test('a client that leaves before its stream begins is no error of the gateway, and gets the stored answer afterwards', async () => {
  const { lines, logger } = logLines();
  const begun = Promise.withResolvers<ServerResponse>();
  const api = await startApi((_asked, response) => begun.resolve(response));
  const gateway = await startRouteGateway({ chain, upstream: api.url, logger });
  const body = 'an order';
  const headers = header(await signOffer(offerOf(await gateway.paid.post(city, { body }))));
  const leaving = new AbortController();
  const sent = { method: 'POST', body, headers, signal: leaving.signal };
  const left = fetch(`${gateway.routesUrl}${city}`, sent);
  const response = await begun.promise;
  leaving.abort();
  await expect(left).rejects.toThrow('aborted');
  await eventually(() => expect(lines).toContainEqual(expect.objectContaining({ client_left: true })));
  response.write('a stream');
  response.end(' to its end');
  expect((await gateway.paid.post(city, { body, headers })).text).toBe('a stream to its end');
  expect(api.asked).toHaveLength(1);
  expect(lines.filter(({ msg }) => msg === 'request failed')).toEqual([]);
});
