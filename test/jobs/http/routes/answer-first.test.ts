import { setTimeout as sleep } from 'node:timers/promises';
import { decodePaymentResponseHeader } from '@x402/fetch';
import { expect, test } from 'vitest';
import type { ConstantChanges } from '../../../../src/base/config/constants.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { landPayment } from '../../../support/onchain.ts';
import { header, offerOf, signOffer } from '../../../support/payer.ts';
import { eventually } from '../../../support/wait.ts';
import {
  type Answering,
  eventTypes,
  json,
  paidFetch,
  signed,
  startApi,
  startRouteGateway,
  weather,
} from './support.ts';

const chain = useChain();
const city = '/weather/paris';
const cent = 10_000n;

const start = (upstream: string, constants: ConstantChanges = {}) =>
  startRouteGateway({ chain, upstream, routes: weather(upstream, 'timeout_ms = 3_000'), constants });

const failing: Answering = (_asked, response) =>
  void response.writeHead(404, { 'x-why': 'unknown' }).end('no such city');

test('an unmodified client gets an image byte for byte, and pays once the upstream has answered', async () => {
  const image = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 1, 2, 3]);
  const api = await startApi(async (_asked, response) => {
    await sleep(100);
    response.writeHead(200, { 'content-type': 'image/png', etag: '"1"' }).end(image);
  });
  const gateway = await start(api.url);
  const before = await chain.balance(payTo);
  const response = await paidFetch(`${gateway.routesUrl}${city}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('image/png');
  expect(response.headers.get('etag')).toBe('"1"');
  expect(Buffer.from(await response.arrayBuffer())).toEqual(image);
  expect(decodePaymentResponseHeader(response.headers.get('payment-response') ?? '')).toMatchObject({
    success: true,
  });
  expect((await chain.balance(payTo)) - before).toBe(cent);
  expect(await eventTypes(gateway)).toEqual(
    'quote_issued payment_verified settlement_started upstream_answered payment_settled enqueued completed'.split(
      ' ',
    ),
  );
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, completed: 1 });
});

test('the offer names the path that was asked for and how it is charged, as the SDK of x402 does', async () => {
  const api = await startApi(json);
  const gateway = await start(api.url);
  const first = offerOf(await gateway.paid.get(`${city}?units=c`));
  expect(first.resource.url).toBe(`${gateway.routesUrl}${city}`);
  expect(first.extensions).toMatchObject({
    bazaar: {
      routeTemplate: '/weather/:city',
      info: { input: { method: 'GET', pathParams: { city: 'city' } } },
    },
  });
  expect(first.accepts[0]?.extra).not.toHaveProperty('paymentFlow');
  const posted = offerOf(await gateway.paid.post('/weather/rome'));
  expect(posted.resource.url).toBe(`${gateway.routesUrl}/weather/rome`);
  expect(posted.accepts[0]?.extra).toMatchObject({ paymentFlow: 'upfront' });
});

test('a first answer and the one that is stored are the same, with all their headers', async () => {
  const api = await startApi((_asked, response) => {
    response.setHeader('set-cookie', ['a=1', 'b=2']).setHeader('link', '</next>; rel="next"');
    response.setHeader('cache-control', 'public, max-age=60').end('sunny');
  });
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  const [first, stored] = [await gateway.paid.get(city, payment), await gateway.paid.get(city, payment)];
  const shown = ({ status, text, headers }: typeof first) => ({
    status,
    text,
    headers: [...headers].filter(([name]) => !['date', 'x-request-id', 'idempotent-replayed'].includes(name)),
  });
  expect(shown(first)).toEqual(shown(stored));
  expect(first).toMatchObject({ status: 200, text: 'sunny' });
  expect(first.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  expect([first, stored].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
  expect(api.asked).toHaveLength(1);
});

test('an answer that is not charged is passed on as it is, and nothing is settled', async () => {
  const api = await startApi(failing);
  const gateway = await start(api.url);
  const before = await chain.balance(payTo);
  const payment = await signed(gateway, city);
  const answer = await gateway.paid.get(city, payment);
  expect(answer).toMatchObject({ status: 404, text: 'no such city' });
  expect(answer.headers.get('x-why')).toBe('unknown');
  expect(answer.headers.get('payment-response')).toBeNull();
  expect(await chain.balance(payTo)).toBe(before);
  expect(await eventTypes(gateway)).toContain('settlement_failed');
  expect(await gateway.paid.get(city, payment)).toMatchObject({
    status: 402,
    json: { reason: 'status_404' },
  });
  expect(api.asked).toHaveLength(1);
});

test('the refund of a payment that lands although its answer was not charged is due, where no repetition is answered', async () => {
  const api = await startApi(failing);
  const gateway = await start(api.url, { routes: { retrySecs: 1 } });
  const payment = await signOffer(offerOf(await gateway.paid.get(city)));
  expect((await gateway.paid.get(city, header(payment))).status).toBe(404);
  await landPayment(chain.rpcUrl, payment);
  await eventually(async () =>
    expect(await gateway.paid.get(city, header(payment))).toMatchObject({
      status: 410,
      json: { code: 'refund_due' },
    }),
  );
});

test.each([
  ['breaks off', (_asked, response) => void response.destroy(), 'upstream_reset'],
  ['never answers', () => {}, 'upstream_timeout'],
  [
    'answers more than can be stored',
    (_asked, response) => void response.end(Buffer.alloc(2_000_000)),
    'upstream_too_large',
  ],
  [
    'answers fewer bytes than it says',
    (_asked, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('five!');
      setTimeout(() => response.destroy(), 50);
    },
    'upstream_reset',
  ],
] satisfies [string, Answering, string][])(
  'an upstream that %s costs the client nothing',
  async (_what, answering, reason) => {
    const api = await startApi(answering);
    const gateway = await start(api.url);
    const before = await chain.balance(payTo);
    const answer = await gateway.paid.get(city, await signed(gateway, city));
    expect(answer).toMatchObject({ status: 502, json: { code: 'upstream_unanswered' } });
    expect(await chain.balance(payTo)).toBe(before);
    const [failed] = (await gateway.database.db
      .selectFrom('tollbook.event')
      .select('data')
      .where('type', '=', 'settlement_failed')
      .execute()) as unknown as { data: string }[];
    expect(JSON.parse(failed!.data)).toMatchObject({ reason });
  },
);

test('simultaneous requests with one payment ask the upstream once, and all get its answer', async () => {
  const api = await startApi(async (...asked) => {
    await sleep(300);
    await json(...asked);
  });
  const gateway = await start(api.url);
  const payment = await signed(gateway, city);
  const answers = await Promise.all([1, 2, 3].map(() => gateway.paid.get(city, payment)));
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, json: { sunny: true } });
  expect(api.asked).toHaveLength(1);
});
