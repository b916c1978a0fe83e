import { expect, test } from 'vitest';
import { useChain } from '../../../support/devnet.ts';
import { useShared } from '../../../support/shared.ts';
import { payTo } from '../../../support/gateway.ts';
import { header, offerOf, signOffer, v1Header } from '../../../support/payer.ts';
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
const city = '/weather/paris?days=3';

/** A seller's service that says this price, or for each question another one. */
async function startPrices(price: string | ((question: Question) => string)) {
  const api = await startApi(({ body }, response) => {
    const said = typeof price === 'function' ? price(JSON.parse(body) as Question) : price;
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ price: said }));
  });
  return { api, questions: () => api.asked.map(({ body }) => JSON.parse(body) as Question) };
}

interface Question {
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body_bytes: number;
}

/** A gateway whose route costs at most a dollar. */
async function startPriced(pricesUrl: string, more = '') {
  const api = await startApi(json);
  const routes = weather(api.url, `price_url = "${pricesUrl}/price"\n${more}`).replace(
    '0.01 USD',
    '1.00 USD',
  );
  const gateway = await startRouteGateway({ chain, upstream: api.url, routes });
  return { api, gateway };
}

const amountOf = (answer: Parameters<typeof offerOf>[0]): string => offerOf(answer).accepts[0]?.amount ?? '';

test('a request costs what the seller says of it, and the official client pays that', async () => {
  const prices = await startPrices(({ query }: Question) => (query === 'days=3' ? '0.03 USD' : '0.01 USD'));
  const { api, gateway } = await startPriced(prices.api.url, 'price_headers = ["accept-language"]');
  const before = await chain.balance(payTo);
  const answer = await paidFetch(`${gateway.routesUrl}${city}`, { headers: { 'accept-language': 'fr' } });
  expect(answer.status).toBe(200);
  expect(await chain.balance(payTo)).toBe(before + 30_000n);
  expect(amountOf(await gateway.paid.get('/weather/paris'))).toBe('10000');
  expect(prices.questions()).toMatchObject([
    { path: '/weather/paris', query: 'days=3', headers: { 'accept-language': 'fr' }, body_bytes: 0 },
    { query: '', headers: {} },
  ]);
  expect(api.asked).toHaveLength(1);
  expect(await eventTypes(gateway)).toContain('completed');
});

test.each<[what: string, sent: Record<string, string>, path: string]>([
  ['another query', {}, '/weather/paris?days=30'],
  ['another path', {}, '/weather/rome?days=3'],
  ['another of the headers that the price depends on', { 'accept-language': 'fr' }, city],
])('a quote for one request is not paid by one with %s', async (_what, sent, path) => {
  const prices = await startPrices('0.03 USD');
  const { api, gateway } = await startPriced(prices.api.url, 'price_headers = ["accept-language"]');
  const before = await chain.balance(payTo);
  const answer = await gateway.paid.get(path, { ...(await signed(gateway, city)), ...sent });
  expect(answer).toMatchObject({ status: 402, json: { reason: 'inputs_hash_mismatch' } });
  expect(await chain.balance(payTo)).toBe(before);
  expect(api.asked).toHaveLength(0);
});

test('a quote for one body is not paid by another one of the same length', async () => {
  const prices = await startPrices('0.03 USD');
  const { gateway } = await startPriced(prices.api.url);
  const offered = await gateway.paid.post(city, { body: 'four' });
  const payment = header(await signOffer(offerOf(offered)));
  expect(await gateway.paid.post(city, { body: 'five', headers: payment })).toMatchObject({
    status: 402,
    json: { reason: 'inputs_hash_mismatch' },
  });
  expect((await gateway.paid.post(city, { body: 'four', headers: payment })).status).toBe(200);
});

const hang: Answering = () => {};
const wrong = useShared(async () => {
  const prices = await startApi(hang);
  return { prices, ...(await startPriced(prices.url)) };
});
test.each<[what: string, answering: Answering]>([
  ['is not there', (_asked, response) => void response.writeHead(500).end()],
  ['comes too late', hang],
  ['is not JSON', (_asked, response) => void response.end('0.01 USD')],
  ['has no price', (_asked, response) => void response.end('{"cost":"0.01 USD"}')],
  ['is zero', (_asked, response) => void response.end('{"price":"0 USD"}')],
  ['is a number', (_asked, response) => void response.end('{"price":0.01}')],
  ['is in another unit than the route', (_asked, response) => void response.end('{"price":"1000"}')],
  [
    'is above the highest price of the route',
    (_asked, response) => void response.end('{"price":"1.01 USD"}'),
  ],
  [
    'is longer than 4 KiB',
    (_asked, response) => void response.end(`{"price":"0.01 USD"}${' '.repeat(5_000)}`),
  ],
])('nothing is offered for a request whose price %s', async (_what, answering) => {
  const { prices, gateway } = wrong();
  prices.answering = answering;
  expect(await gateway.paid.get(city)).toMatchObject({ status: 503, json: { code: 'price_unavailable' } });
});

test('the same question is asked once in ten seconds, and questions for a price are charged to the budget of their client', async () => {
  const prices = await startPrices('0.03 USD');
  const api = await startApi(json);
  const routes = weather(api.url, `price_url = "${prices.api.url}/price"`).replace('0.01 USD', '1.00 USD');
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    routes,
    tables: '[limits]\nrequests_per_minute = 20\n',
  });
  for (const _ of Array.from({ length: 5 })) expect((await gateway.paid.get(city)).status).toBe(402);
  expect(prices.questions()).toHaveLength(1);
  let asked = 0;
  while ((await gateway.paid.get(`${city}&n=${asked}`)).status === 402) asked++;
  expect(asked).toBeLessThan(10);
  expect(prices.questions().length).toBe(asked + 1);
});

test('a payment of version 1, which names no request, is refused, and no version 1 offer is made', async () => {
  const prices = await startPrices('0.03 USD');
  const { gateway } = await startPriced(prices.api.url);
  const offered = await gateway.paid.get(city);
  expect(offered.json).toMatchObject({
    accepts: [],
    error: expect.stringContaining('depends on the request'),
  });
  expect(await gateway.paid.get(city, v1Header(await signOffer(offerOf(offered))))).toMatchObject({
    status: 402,
    json: { reason: 'price_depends_on_request' },
  });
});

test('the price list names the highest price of such a route, and says that it is that', async () => {
  const prices = await startPrices('0.03 USD');
  const { gateway } = await startPriced(prices.api.url);
  expect(await gateway.get('/x402/jobs/7/0/price')).toMatchObject({
    json: {
      name: 'GET, POST /weather/:city',
      methods: ['GET', 'POST'],
      price: '1 USD',
      price_depends_on_request: true,
    },
  });
  expect(prices.questions()).toHaveLength(0);
});
