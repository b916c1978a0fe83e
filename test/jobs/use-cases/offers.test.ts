import { toFunctionSelector } from 'viem/utils';
import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { type Fault, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { type Answer, payTo, startTestGateway } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { header, type Offer, offerOf, payFor, signOffer } from '../../support/payer.ts';
import { operatorOf } from '../../support/operator.ts';
import { type RpcQuestion, startRpcProxy } from '../../support/rpc-proxy.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const home = 'eip155:84532';
const elsewhere = 'eip155:8453';
const unavailable = { status: 503, json: { code: 'facilitator_unavailable' } };

const busy = { error: { code: -32_005, message: 'limit exceeded' } };
/** Its code, or what a function without arguments returns. */
const isAboutContract = ({ method, params }: RpcQuestion): boolean =>
  method === 'eth_getCode' || (params[0] as { data?: string } | undefined)?.data?.length === 10;

const settles = (...networks: string[]): Fault => ({
  answer: {
    kinds: networks.flatMap((network) => [
      { x402Version: 2, scheme: 'exact', network },
      // neither of these takes the payments that are made here
      { x402Version: 2, scheme: 'upto', network: 'eip155:1' },
      { x402Version: 1, scheme: 'exact', network: 'base' },
    ]),
  },
});

/** A gateway with two tokens at home and one elsewhere; `supported` is the facilitator's first answer. */
async function start(supported: Fault, top = '', rpcUrl = chain.rpcUrl) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  proxy.faults.supported = supported;
  const database = await createDatabase();
  const { lines, logger } = logLines();
  const tables = `[[accepted_tokens]]
network = "${elsewhere}"\nasset = "${chain.token}"\nsymbol = "USDbC"\ndecimals = 6\npay_to = "${payTo}"
eip712_name = "USD Coin"\neip712_version = "2"
[[networks]]\nid = "${elsewhere}"\nrpc_url = "http://127.0.0.1:1"`;
  const peers = {
    rpcUrl,
    facilitatorUrl: chain.facilitatorUrl,
    token: chain.token,
    secondToken: chain.secondToken,
  };
  const gateway = await startTestGateway({
    database,
    chain: peers,
    facilitatorUrl: proxy.url,
    tables,
    top,
    logger,
  });
  const offerLogs = () =>
    lines.flatMap(({ level, symbol, msg }) => (/ this token/.test(msg) ? [[level, symbol]] : []));
  return { proxy, database, gateway, offerLogs, lines };
}

const offered = (answer: Answer) => offerOf(answer).accepts.map(({ network }) => network);
const priced = ({ json }: Answer) =>
  (json.settlement_options as { network: string }[]).map(({ network }) => network);

test('a token that the facilitator does not settle is never offered, from the first request on', async () => {
  const { gateway, offerLogs } = await start(settles(home));
  const answer = await gateway.post(job, { body: 'x' });
  expect(offered(answer)).toEqual([home, home]);
  expect(answer.json.accepts.map(({ network }: { network: string }) => network)).toEqual(['base-sepolia']);
  expect(priced(await gateway.get(`${job}/price`))).toEqual([home, home]);
  expect(offerLogs()).toEqual([[40, 'USDbC']]);
  expect((await payFor(gateway, job)).status).toBe(202);
});

test('a token leaves the offers and returns to them: each is logged once, and the price has a new ETag each time', async () => {
  const { proxy, database, gateway, offerLogs } = await start(settles('eip155:*'));
  const price = () => gateway.get(`${job}/price`);
  const whole = await price();
  expect(priced(whole)).toEqual([home, home, elsewhere]);
  const tag = whole.headers.get('etag') ?? '';

  proxy.faults.supported = settles(home, 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp');
  await eventually(async () => expect(priced(await price())).toEqual([home, home]));
  const changed = await gateway.get(`${job}/price`, { 'if-none-match': tag });
  expect(changed.status).toBe(200);
  expect(changed.headers.get('etag')).not.toBe(tag);
  expect(offered(await gateway.post(job, { body: 'x' }))).toEqual([home, home]);

  // the last answer applies until there is another, and is not logged again
  proxy.faults.supported = 'server_error';
  const asked = proxy.seen.length;
  await eventually(() => expect(proxy.seen.slice(asked)).toContain('supported'));
  const operator = await operatorOf(database, ['status:read']);
  await eventually(async () =>
    expect((await gateway.get('/status', operator)).json.jobs.facilitator.detail).toContain('status_502'),
  );
  expect(priced(await price())).toEqual([home, home]);

  proxy.faults.supported = settles(home, elsewhere);
  await eventually(async () => expect(priced(await price())).toEqual([home, home, elsewhere]));
  expect((await gateway.get(`${job}/price`, { 'if-none-match': tag })).status).toBe(304);
  expect(offered(await gateway.post(job, { body: 'x' }))).toEqual([home, home, elsewhere]);
  expect(offerLogs()).toEqual([
    [40, 'USDbC'],
    [30, 'USDbC'],
  ]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('if no token can be offered the answer is 503, no quote is issued or recorded, and the price says why', async () => {
  const { database, gateway } = await start(settles());
  const faultsOf = await documentOf(gateway);
  const answer = await gateway.post(job, { body: 'x' });
  expect(answer).toMatchObject(unavailable);
  expect(answer.headers.get('retry-after')).not.toBeNull();
  expect(faultsOf('post', '/x402/jobs/{service_id}/{job_index}', answer)).toEqual([]);
  const garbage = await gateway.post(job, { body: 'x', headers: { 'payment-signature': 'garbage' } });
  expect(garbage).toMatchObject(unavailable);
  const price = await gateway.get(`${job}/price`);
  expect(price).toMatchObject({
    status: 200,
    json: {
      price: '0.001 ether',
      price_wei: '1000000000000000',
      settlement_options: [],
      unavailable: { reason: 'settles_no_accepted_token' },
      x402_endpoint: `${gateway.url}${job}`,
    },
  });
  expect(faultsOf('get', '/x402/jobs/{service_id}/{job_index}/price', price)).toEqual([]);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.map(({ type }) => type)).toEqual(['payment_rejected']);
});

test('a gateway starts while the facilitator is down: every token is offered, and a warning is logged', async () => {
  const { gateway, offerLogs, lines } = await start('cut_before');
  expect(offered(await gateway.post(job, { body: 'x' }))).toEqual([home, home, elsewhere]);
  expect(lines.find(({ msg }) => msg.includes('answers which tokens it settles'))).toMatchObject({
    level: 40,
    cause: 'connection',
  });
  expect(offerLogs()).toEqual([]);
});

test.each([
  ['says that it is invalid', { answer: { isValid: false, invalidReason: 'invalid_network' } }, 402],
  ['cannot tell', 'server_error', 503],
  ['accepts it nevertheless', 'pass', 202],
] satisfies [string, Fault, number][])(
  'a quote of before is put to the facilitator even where verify is skipped: it %s',
  async (_, verdict, status) => {
    const { proxy, database, gateway } = await start(settles(home, elsewhere), 'facilitator_verify = false');
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    proxy.faults.supported = settles(elsewhere);
    await eventually(async () =>
      expect(offered(await gateway.post(job, { body: 'x' }))).toEqual([elsewhere]),
    );
    const before = await chain.balance(payTo);
    proxy.faults.verify = verdict;
    const answer = await gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
    expect(answer.status).toBe(status);
    expect(proxy.seen).toContain('verify');
    expect((await chain.balance(payTo)) > before).toBe(status === 202);
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const started = events.filter(({ type }) => type === 'settlement_started');
    expect(started).toHaveLength(status === 202 ? 1 : 0);
  },
);

test('a token whose contract turns out to contradict the configuration leaves the offers, and a payment of before is refused uncharged', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  // it does not answer at the start
  rpc.lie = () => busy;
  const { gateway, database, lines } = await start(settles(home), '', rpc.url);
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const inToken = offer.accepts.find(({ asset }) => asset.toLowerCase() === chain.token);
  expect(offer.accepts.map(({ network }) => network)).toEqual([home, home]);
  const decimalsOf = toFunctionSelector('decimals()');
  rpc.lie = ({ params }) => {
    const { to, data } = (params[0] ?? {}) as { to?: string; data?: string };
    return to === chain.token && data === decimalsOf ? { result: `0x${'0'.repeat(62)}12` } : undefined;
  };
  await eventually(async () => expect(offered(await gateway.post(job, { body: 'x' }))).toEqual([home]));
  expect(priced(await gateway.get(`${job}/price`))).toEqual([home]);
  const before = await chain.balance(payTo);
  const headers = header(await signOffer({ ...offer, accepts: inToken ? [inToken] : [] }));
  const answer = await gateway.post(job, { body: 'x', headers });
  expect(answer).toMatchObject({ status: 402, json: { code: 'payment_invalid' } });
  expect(offerOf(answer)).toMatchObject({ error: expect.stringContaining('token_misconfigured') });
  expect(await chain.balance(payTo)).toBe(before);
  expect(lines.filter(({ mistake }) => String(mistake).includes('the contract says 18'))).toHaveLength(1);
  expect((await payFor(gateway, job)).status).toBe(202);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'settlement_started')).toHaveLength(1);
});

test('with ten tokens the offer and what its payer echoes stay under 6 KiB: the last tokens are left out', async () => {
  const database = await createDatabase();
  const tables = Array.from(
    { length: 8 },
    (_, index) => `
[[accepted_tokens]]
network = "eip155:84532"
asset = "0x${`${index + 1}`.repeat(40)}"
symbol = "TOKEN${index}"
decimals = 18
pay_to = "${payTo}"
eip712_name = "A Token with a Long Name ${index}"
eip712_version = "2"
`,
  ).join('');
  // no chain has these tokens, so the RPC is silent about them
  const rpc = await startRpcProxy(chain.rpcUrl);
  rpc.lie = (question) => (isAboutContract(question) ? busy : undefined);
  const { facilitatorUrl, token, secondToken } = chain;
  const peers = { rpcUrl: rpc.url, facilitatorUrl, token, secondToken };
  const withKey = {
    top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
    env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
  };
  const gateway = await startTestGateway({ database, chain: peers, tables, ...withKey });
  const plain = await startTestGateway({ database, chain: peers, tables });
  const rejected = (quoteDigestOf: Offer) =>
    signOffer(quoteDigestOf, { signed: { value: '1' } }).then((payment) =>
      gateway.post(job, { body: 'x', headers: header(payment) }),
    );
  const asked = await gateway.post(job, { body: 'x' });
  const offer = offerOf(asked);
  const refused = await rejected(offer);
  expect(refused.json.reason).toBe('authorization_value_mismatch');
  for (const answer of [asked, refused, await plain.post(job, { body: 'x' })])
    expect((answer.headers.get('payment-required') ?? '').length).toBeLessThan(6_144);
  expect(offer.accepts.length).toBeGreaterThan(2);
  const symbols = offer.accepts.map(({ extra }) => (extra['quote'] as unknown as { symbol: string }).symbol);
  expect(symbols).toEqual(['USDC', 'EURC', 'TOKEN0', 'TOKEN1', 'TOKEN2'].slice(0, symbols.length));
  const { resource, extensions } = offer as Offer & { readonly extensions: object };
  const headers = header({ ...(await signOffer(offer, { option: 1 })), resource, extensions });
  expect((headers['payment-signature'] ?? '').length).toBeLessThan(6_144);
  expect((await gateway.post(job, { body: 'x', headers })).status).toBe(202);
});
