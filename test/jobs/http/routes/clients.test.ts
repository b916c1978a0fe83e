import { wrapAxiosWithPaymentFromConfig } from '@x402/axios';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader } from '@x402/fetch';
import axios from 'axios';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../../src/devnet/token.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { permitted, refusedCaller } from '../../../support/caller.ts';
import { header, offerOf, payer, signOffer } from '../../../support/payer.ts';
import { type Answering, json, paidFetch, startApi, startRouteGateway, weather } from './support.ts';

const chain = useChain();
const cent = 10_000n;
const image = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 1, 2, 3]);

/** What a client gets for a GET. */
interface Got {
  readonly status: number;
  readonly type: string | null;
  readonly body: Buffer;
  readonly settled: string | null;
}

async function getByFetch(url: string): Promise<Got> {
  const response = await paidFetch(url);
  const { status, headers } = response;
  const body = Buffer.from(await response.arrayBuffer());
  return { status, type: headers.get('content-type'), body, settled: headers.get('payment-response') };
}

const paidAxios = wrapAxiosWithPaymentFromConfig(axios.create(), {
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
});

async function getByAxios(url: string): Promise<Got> {
  const { status, headers, data } = await paidAxios.get<Buffer>(url, { responseType: 'arraybuffer' });
  const text = (name: string): string | null => headers[name]?.toString() ?? null;
  return { status, type: text('content-type'), body: data, settled: text('payment-response') };
}

const clients = [
  { name: '@x402/fetch', get: getByFetch },
  { name: '@x402/axios', get: getByAxios },
];

/** JSON, or the image for paths that end so. */
const answering: Answering = (asked, response, request) =>
  asked.url.endsWith('.png')
    ? void response.writeHead(200, { 'content-type': 'image/png' }).end(image)
    : json(asked, response, request);

test.each(clients.flatMap((client) => ['authorization', 'upfront'].map((flow) => ({ ...client, flow }))))(
  '$name, unmodified, gets JSON and an image in the flow $flow, each for a cent',
  async ({ get, flow }) => {
    const api = await startApi(answering);
    const gateway = await startRouteGateway({
      chain,
      upstream: api.url,
      routes: weather(api.url, `flow = "${flow}"`),
    });
    const before = await chain.balance(payTo);
    const city = '/weather/paris?units=c';
    const object = await get(`${gateway.routesUrl}${city}`);
    expect(object).toMatchObject({ status: 200, type: 'application/json' });
    expect(JSON.parse(object.body.toString())).toEqual({ url: city, sunny: true });
    const picture = await get(`${gateway.routesUrl}/weather/paris.png`);
    expect(picture).toMatchObject({ status: 200, type: 'image/png', body: image });
    for (const { settled } of [object, picture])
      expect(decodePaymentResponseHeader(settled ?? '')).toMatchObject({
        success: true,
        payer: payer.address.toLowerCase(),
      });
    expect((await chain.balance(payTo)) - before).toBe(2n * cent);
  },
);

test.each(['authorization', 'upfront'])(
  'with the flow %s the upstream of a restricted route gets the caller whose permission was checked, and only that one may buy',
  async (flow) => {
    const api = await startApi(json);
    const restriction = `auth_mode = "payer_is_caller"\nnet_rpc_url = "${chain.rpcUrl}"\nnet_contract = "${chain.registry}"\n`;
    const policy = `[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "restricted_paid"\n${restriction}`;
    const routes = weather(api.url, `flow = "${flow}"`).replace('service_id = 7', 'service_id = 1');
    const gateway = await startRouteGateway({ chain, upstream: api.url, routes, tables: policy });
    const path = '/weather/paris';
    const payBy = async (account: typeof permitted) =>
      gateway.paid.get(path, header(await signOffer(offerOf(await gateway.paid.get(path)), { account })));
    expect((await payBy(refusedCaller)).status).toBe(403);
    expect((await payBy(permitted)).status).toBe(200);
    expect(api.asked.map(({ headers }) => headers['x-net-caller'])).toEqual([
      permitted.address.toLowerCase(),
    ]);
  },
);

const dollarsByPermit2 = (text: string): string =>
  text.replace('eip712_name = "USD Coin"', 'transfer_method = "permit2"\neip712_name = "USD Coin"');

test('the official client pays a route by Permit2, and gets its answer', async () => {
  const api = await startApi(json);
  const gateway = await startRouteGateway({ chain, upstream: api.url, change: dollarsByPermit2 });
  await approvePermit2(chain.chain, chain.token, devnetKeys.payer);
  const before = await chain.balance(payTo);
  const { status, body, settled } = await getByFetch(`${gateway.routesUrl}/weather/berlin`);
  expect([status, JSON.parse(body.toString())]).toEqual([200, { url: '/weather/berlin', sunny: true }]);
  expect(decodePaymentResponseHeader(settled ?? '')).toMatchObject({ success: true });
  expect((await chain.balance(payTo)) - before).toBe(cent);
});
