import { describe, expect, it } from 'vitest';
import { flowOf } from '../../../src/base/config/routes.ts';
import { isPlainTarget, patternFault } from '../../../src/base/values/route-pattern.ts';
import { priceIn } from '../../../src/base/values/amount.ts';
import { freeModel, localUpstream, minimal, mistakesIn, networks, parse, runner, wrongs } from './support.ts';

const variables = {
  RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
  ROUTE_TOKEN: 'a-route-token-of-enough-characters',
};
const listener = (more = '') => `[route_listener]\nbind_address = "127.0.0.1:8403"\n${more}\n`;
const route = (index: number, more: string) =>
  `[[routes]]\nservice_id = 7\njob_index = ${index}\nupstream = "http://127.0.0.1:3000"\nprice = "0.01 USD"\n${more}\n`;
const weather = route(0, 'path = "/weather/:city"');

const chatIn = (currency: string) => `[chat]\ncurrency = "${currency}"\n${localUpstream}${freeModel}`;
const metered = (more = '') => `${listener()}${route(0, `path = "/a"\ncharge_header = "x-price"\n${more}`)}`;
const lineOf = (text: string, key: string) => text.split('\n').findIndex((line) => line.startsWith(key)) + 1;

const config = (tables: string, top = '') =>
  `${minimal(top)}\n${networks}\n${tables}`.replace('symbol = "USDC"', 'symbol = "USDC"\npeg = "USD"');
const wrongsOf = (tables: string, top = '') => wrongs(config(tables, top), {}, variables);

describe('routes', () => {
  it('are jobs that anyone may buy, with their price, and need no runner', async () => {
    const { config: read, warnings } = await parse(config(listener() + weather), {}, variables);
    expect(read.jobs?.jobPrices.get('7/0')).toEqual({ wei: 10n ** 16n, inUsd: true });
    expect(read.jobs?.jobPolicies.get('7/0')).toMatchObject({ invocationMode: 'public_paid' });
    expect(read.jobs?.routes?.all.get('7/0')).toMatchObject({ methods: ['GET'], path: '/weather/:city' });
    expect(warnings.join('\n')).not.toContain('service 7');
  });

  it.each([
    ['without a listener', weather, 'route_listener: is missing'],
    ['a listener without a route', listener(), 'has no route'],
    [
      'two of one path, whatever its parameters are called',
      listener() + weather + route(1, 'path = "/weather/:town"'),
      'routes[1].path: is that of routes[0] as well, for GET',
    ],
    ['two of one job', listener() + weather + route(0, 'path = "/news"'), 'repeats job 7/0'],
    [
      'a free path that is sold',
      listener('free = { "/weather/:x" = "http://127.0.0.1:3000" }') + weather,
      'is sold by routes[0]',
    ],
    [
      'free paths without an upstream',
      listener('free = ["/health"]') + weather,
      'free: must be a table of URLs',
    ],
    [
      'a free path that is no path',
      listener('free = { health = "http://127.0.0.1:3000" }') + weather,
      'route_listener.free.health: ',
    ],
    [
      'the gateway as its own upstream',
      listener() + weather.replace('127.0.0.1:3000', 'localhost:8403'),
      'upstream: is the gateway itself',
    ],
    [
      'an upstream without a scheme',
      listener() + weather.replace('http://127.0.0.1:3000', 'api.example'),
      'is not an http or https URL',
    ],
    ['a price of nothing', listener() + weather.replace('0.01 USD', '0 USD'), 'must be above 0'],
    ['a price that is no price', listener() + weather.replace('0.01 USD', '1 cent'), 'must be dollars'],
    ['no price', listener() + weather.replace('price = "0.01 USD"\n', ''), 'price: is missing'],
    [
      'headers of a price that is not asked for',
      listener() + weather.replace('price =', 'price_headers = ["accept"]\nprice ='),
      'price_headers: needs price_url',
    ],
    ['two prices', `${listener()}${weather}[job_prices.7]\n0 = "1"\n`, 'has a price in [job_prices] as well'],
    [
      'a runner of its service',
      listener() + weather + runner.replace('services = [1]', 'services = [7]'),
      'serves service 7 and would take these calls',
    ],
    [
      'a method twice',
      listener() + route(0, 'path = "/a"\nmethods = ["GET", "GET"]'),
      'names a method twice',
    ],
  ])('%s are refused, and the mistake says where it is', async (_what, tables, said) => {
    expect((await wrongsOf(tables)).join('\n')).toContain(said);
  });

  it('that are charged by their answer are answered before they are settled, by any method, and need the RPC of each token', async () => {
    const { config: read } = await parse(config(metered('methods = ["POST"]')), {}, variables);
    const found = read.jobs?.routes?.all.get('7/0');
    expect(found && [found.chargeHeader, flowOf(found, 'POST')]).toEqual(['x-price', 'authorization']);
    expect(await wrongsOf(metered('flow = "authorization"'))).toEqual([]);

    const upfront = config(metered('flow = "upfront"'));
    expect(await mistakesIn(upfront, {}, variables)).toEqual([
      `${lineOf(upfront, 'flow')} routes[0].flow: must be "authorization", or left out: charge_header is read first`,
    ]);
    const unread = config(metered()).replace(networks, '');
    expect(await mistakesIn(unread, {}, variables)).toEqual([
      `${lineOf(unread, 'charge_header')} routes[0].charge_header: needs an RPC of each accepted token's network: [[networks]] does not name eip155:8453`,
    ]);
    const noName = metered().replace('x-price', 'X-Price: USD');
    expect((await wrongsOf(noName)).join('\n')).toContain(
      'routes[0].charge_header: must be the name of a header',
    );
  });

  it.each([
    ['without a price', '', 'price: is missing'],
    ['with two prices', 'price = "1 USD"\n[job_prices.7]\n1 = "2"', 'price: job 7/1 has a price in'],
    ['without an RPC', 'price = "1 USD"\ncharge_header = "x-price"', 'charge_header: needs an RPC'],
  ])('%s are named by their place in the file, also after one that cannot be read', async (_, own, said) => {
    const second = `[[routes]]\nservice_id = 7\njob_index = 1\npath = "/b"\nupstream = "http://127.0.0.1:3000"\n${own}\n`;
    const text = `${minimal()}\n${listener()}${weather.replace('7', '"seven"')}${second}`;
    const found = await wrongs(text, {}, variables);
    expect(found.filter((wrong) => wrong.startsWith(`routes[1].${said}`))).toHaveLength(1);
  });

  const ofRunner = (more: string, upstream = 'job:1/0') =>
    `${listener()}${route(0, more).replace('http://127.0.0.1:3000', upstream)}${runner}`;

  it.each([
    ['another method', 'path = "/a"\nmethods = ["GET"]', 'methods: must be ["POST"] for a job'],
    ['a parameter', 'path = "/a/:b"\nmethods = ["POST"]', 'path: must have no parameter for a job'],
    ['the other flow', 'path = "/a"\nmethods = ["POST"]\nflow = "upfront"', 'flow: must be "authorization"'],
    [
      'another header of its price',
      'path = "/a"\nmethods = ["POST"]\ncharge_header = "x-cost"',
      'charge_header: must be "x-price" for a job',
    ],
    ['a token', 'path = "/a"\nmethods = ["POST"]\ntoken = "env:ROUTE_TOKEN"', 'token: would be ignored'],
  ])('whose answers a runner makes cannot have %s', async (_what, more, said) => {
    expect(await wrongsOf(ofRunner(more))).toEqual([expect.stringContaining(`routes[0].${said}`)]);
  });

  it.each([
    ['no runner serves', 'job:2/0', '', 'no runner serves service 2'],
    [
      'sells credit',
      'job:1/3',
      '[chat]\n[[top_ups]]\nservice_id = 1\njob_index = 3\ncurrency_per_token = { USDC = "1" }\n[job_prices.1]\n3 = "1"\n',
      'job 1/3 sells credit',
    ],
    ['no job has', 'job:1/99999999999', '', 'is not an http'],
    ['has no service', 'job:/0', '', 'is not an http'],
  ])('whose answers a job makes that %s are refused', async (_what, upstream, more, said) => {
    const found = await wrongsOf(ofRunner('path = "/a"\nmethods = ["POST"]', upstream) + more);
    expect(found.join('\n')).toContain(`routes[0].upstream: ${said}`);
  });

  it('whose answers a runner makes are answered before they are settled, and are asked for again after a crash', async () => {
    const text = config(ofRunner('path = "/a"\nmethods = ["POST"]\ncharge_header = "x-price"'));
    const found = (await parse(text, {}, variables)).config.jobs?.routes?.all.get('7/0');
    expect(found).toMatchObject({ upstream: 'job:1/0', flow: 'authorization', retryLost: true });
  });

  it('that sell completions need a chat in dollars', async () => {
    const sold = route(0, 'path = "/v1/chat/completions"\nmethods = ["POST"]').replace(
      'http://127.0.0.1:3000',
      'chat',
    );
    const text = config(`${listener()}${sold}${chatIn('EUR')}`, 'features = ["x402", "chat"]');
    expect(await wrongs(text, {}, variables)).toEqual([
      'routes[0].upstream: is "chat", which is sold in USD, but [chat] currency is EUR',
    ]);
    expect(await wrongs(text.replace('EUR', 'USD'), {}, variables)).toEqual([]);
  });

  it('priced in dollars need a token with a peg, and one priced in wei needs a rate', async () => {
    const noPeg = `${minimal()}\n${networks}\n${listener()}${weather}`;
    expect((await wrongs(noPeg, {}, variables)).join('\n')).toContain('no token has peg = "USD"');
    const noRate = config(`${listener()}${weather}[job_prices.1]\n0 = "1"\n`).replace(
      /^rate_per_native_unit.*$/m,
      '',
    );
    expect((await wrongs(noRate, {}, variables)).join('\n')).toContain('job 1/0 is priced in wei');
  });
});

it.each([
  ['0.01 USD of a token of 6 decimals', 10n ** 16n, 6, 10_000n],
  ['a millionth of a cent, rounded up to an atom', 10n ** 10n, 6, 1n],
  ['a third more than an atom, rounded up', 1_333_333_333_333n, 6, 2n],
  ['a dollar of a token of 18 decimals', 10n ** 18n, 18, 10n ** 18n],
])('%s costs the same at any rate and markup', (_what, wei, decimals, atoms) => {
  const token = { decimals, markupBps: 500, peg: 'USD' } as const;
  expect(priceIn(token, { wei, inUsd: true }, undefined)).toBe(atoms);
  expect(priceIn(token, { wei, inUsd: true }, { numerator: 7n, scale: 0 })).toBe(atoms);
  expect(priceIn({ ...token, peg: undefined }, { wei, inUsd: true }, undefined)).toBeUndefined();
});

it.each(['/', '/a', '/a/:b/c', '/a/*', '/a.b-c_d~e'])('%s is a path of a route', (pattern) => {
  expect(patternFault(pattern)).toBeUndefined();
});

it.each(['', 'a', '//', '/a/', '/a/../b', '/a*', '/*/a', '/:a/:a', '/a(b)', '/a?b', '/%61', '/:a-:b'])(
  '%j is not a path of a route',
  (pattern) => expect(patternFault(pattern)).toBeTypeOf('string'),
);

it.each(['/', '/a/b?c=//..%2f', '/caf%C3%A9', "/it's"])('%s is seen alike by all readers', (target) => {
  expect(isPlainTarget(target)).toBe(true);
});

it.each([
  '//a',
  '/a//b',
  '/.',
  '/a/..',
  '/%2e',
  '/a%2Fb',
  '/a%5cb',
  '/a%00',
  '/a%',
  '/a%zz',
  '/a;b',
  '/a%3bb',
  '/a b',
  '/a#b',
  '/a\\b',
  'a',
])('%s is not', (target) => expect(isPlainTarget(target)).toBe(false));
