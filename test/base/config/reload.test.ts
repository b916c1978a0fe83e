import { expect, test } from 'vitest';
import type { Config } from '../../../src/base/config/config.ts';
import { reloadConfig } from '../../../src/base/config/reload.ts';
import { env, minimal, networks, parse, runner, token } from './support.ts';

const chat = `[[upstreams]]
name = "one"
base_url = "https://one.example/v1"
[[models]]
name = "free"
upstreams = ["one"]
free_tier = true
context_length = 100
max_output_tokens = 10
`;

async function read(top = '', tables = '', files = {}): Promise<Config> {
  const features = top.includes('features') ? top : `features = ["x402", "chat"]\n${top}`;
  const text = minimal(features) + networks + runner + chat + tables;
  const isListed = tables.includes('[[facilitators]]');
  return (await parse(isListed ? text.replace(/^facilitator_url = .*$/m, '') : text, files, env)).config;
}

test('an unchanged configuration requires no restart and reloads to itself', async () => {
  const started = await read();
  const { config, requireRestart } = reloadConfig(started, await read());
  expect(requireRestart).toEqual([]);
  expect({ ...config, jobs: undefined }).toEqual({ ...started, jobs: undefined });
});

test('a reload puts reloadable keys in force and names none of them', async () => {
  const next = await read(
    'quote_ttl_secs = 20\nmarkup_bps = 7',
    '[chat]\nkey_per_minute = 3\n[job_prices.1]\n0 = "5"',
  );
  const { config, requireRestart } = reloadConfig(await read(), next);
  expect(requireRestart).toEqual([]);
  expect(config.jobs).toMatchObject({ quoteTtlSecs: 20, acceptedTokens: [{ markupBps: 7 }] });
  expect([...(config.jobs?.jobPrices ?? [])]).toEqual([['1/0', { wei: 5n, inUsd: false }]]);
  expect(config.chat?.keyPerMinute).toBe(3);
});

test('a reload keeps the other keys and returns their TOML names, with the table they are in', async () => {
  const started = await read();
  const top = 'log_level = "debug"\nfacilitator_verify = false\nquote_ttl_secs = 20';
  const tables = `[chat]
currency = "EUR"
key_per_minute = 3
[limits]
requests_per_minute = 1
[delivery]
timeout_ms = 2_000
max_call_age_secs = 90
[alerts]
pagerduty_url = "https://alerts.example"
[[runners]]
services = [2]
mode = "push"
url = "https://runner.example"
token = "env:RUNNER_TOKEN"
[log]
origin = "jobs.example/log"
key = "file:key"
`;
  const next = await read(top, tables, { 'conf/key': '07'.repeat(32) });
  const { config, requireRestart } = reloadConfig(started, next);
  expect(requireRestart).toEqual([
    'log_level',
    'runners',
    'limits.requests_per_minute',
    'delivery.timeout_ms',
    'delivery.max_call_age_secs',
    'alerts.pagerduty_url',
    'log',
    'chat.currency',
    'facilitator_verify',
  ]);
  const { logLevel, runners, limits, delivery, alerts, log } = started;
  expect(config).toMatchObject({ logLevel, runners, limits, delivery, alerts, log });
  expect(config.jobs).toMatchObject({ facilitatorVerify: true, quoteTtlSecs: 20 });
  expect(config.chat).toMatchObject({ currency: 'USD', keyPerMinute: 3 });
});

/** The facilitators of a file. */
function listed(...tables: readonly string[]): string {
  return tables.map((table) => `[[facilitators]]\n${table}\n`).join('');
}

test('facilitators that a reload adds, leaves out or puts in another order require a restart, and so do their factories of wallets; their tokens do not', async () => {
  const [one, other] = ['url = "https://one.example"', 'url = "https://other.example"'];
  const files = { 'conf/token': 'first' };
  const started = await read('', listed(`${one}\ntoken = "file:token"`, other), files);
  const rotated = await read('', listed(`${one}\ntoken = "file:token"`, other), { 'conf/token': 'second' });
  expect(reloadConfig(started, rotated)).toMatchObject({
    requireRestart: [],
    config: { jobs: { facilitators: [{ tokens: ['second'] }, { tokens: undefined }] } },
  });
  for (const changed of [
    listed(one),
    listed(other, one),
    listed(`${one}\nwallet_factories = ["0x${'ab'.repeat(20)}"]`, other),
    listed(one, other, 'url = "https://third.example"'),
  ])
    expect(reloadConfig(started, await read('', changed))).toMatchObject({
      requireRestart: ['facilitators'],
      config: { jobs: { facilitators: [{ name: 'one.example' }, { name: 'other.example' }] } },
    });
});

test('a secret whose file has changed is used after a reload, together with the second one', async () => {
  const top = 'facilitator_token = "file:token"';
  const tables = `[identity]
secret = "file:session"
[log]
origin = "jobs.example/log"
key = "file:log"
`;
  const files = {
    'conf/token': 'first',
    'conf/session': 'a-session-secret-of-32-characters',
    'conf/log': '07'.repeat(32),
    'conf/next': '08'.repeat(32),
  };
  const started = await read(top, tables, files);
  const rotated = tables
    .replace('secret = "file:session"', 'secret = ["file:session", "file:next"]')
    .replace('key = "file:log"', 'key = ["file:next", "file:log"]');
  const next = await read('facilitator_token = ["file:token", "file:next"]', rotated, {
    ...files,
    'conf/token': 'second',
  });
  const withTokens = {
    ...next,
    runners: next.runners.map((one) => ({
      ...one,
      tokens: ['a-new-token-of-enough-characters', ...one.tokens] as const,
    })),
  };
  const { config, requireRestart } = reloadConfig(started, withTokens);
  expect(requireRestart).toEqual([]);
  expect(config.jobs?.facilitators[0]?.tokens).toEqual(['second', files['conf/next']]);
  expect(config.identity?.secrets).toEqual([files['conf/session'], files['conf/next']]);
  expect(config.log?.seeds).toEqual([files['conf/next'], files['conf/log']]);
  expect(config.runners[0]?.tokens).toEqual(['a-new-token-of-enough-characters', env.RUNNER_TOKEN]);
});

test('a secret that no reload can change is reported by its key, and the old secret stays in use', async () => {
  const tables = '[alerts]\nwebhook = "https://alerts.example"\nsecret = "file:secret"';
  const started = await read('', tables, { 'conf/secret': 'the-first-secret-of-alerts-long-enough' });
  const next = await read('', tables, { 'conf/secret': 'the-second-secret-of-alerts-long-enough' });
  const { config, requireRestart } = reloadConfig(started, next);
  expect(requireRestart).toEqual(['alerts.secret']);
  expect(config.alerts.secret).toBe('the-first-secret-of-alerts-long-enough');
});

test('a feature that is switched on requires a restart', async () => {
  const { config, requireRestart } = reloadConfig(await read('features = ["x402"]'), await read());
  expect(requireRestart).toEqual(['features', 'chat']);
  expect(config.chat).toBeUndefined();
});

test('a feature cannot be switched off without a restart', async () => {
  const started = await read();
  const next = await read('features = ["x402"]');
  expect(() => reloadConfig(started, next)).toThrow('switching off the feature chat requires a restart');
});

test('the payee of a token is reloadable', async () => {
  const next = minimal('features = ["x402", "chat"]').replace(
    token,
    token.replace('0x70997970', '0x80997970'),
  );
  const { config } = await parse(next + networks + runner + chat);
  const reloaded = reloadConfig(await read(), config);
  expect(reloaded.requireRestart).toEqual([]);
  expect(reloaded.config.jobs?.acceptedTokens[0]?.payTo).toBe('0x80997970c51812dc3a010c7d01b50e0d17dc79c8');
});

const routes = (path: string, price: string) => `[route_listener]
bind_address = "127.0.0.1:8405"
[[routes]]
service_id = 7
job_index = 0
path = "${path}"
upstream = "http://127.0.0.1:3000"
price = "${price} USD"
`;
const readWith = async (tables: string): Promise<Config> => {
  const text = minimal('features = ["x402", "chat"]') + networks + runner + chat + tables;
  return (await parse(text.replace('symbol = "USDC"', 'symbol = "USDC"\npeg = "USD"'), {}, env)).config;
};
const pricesOf = ({ jobs }: Config) =>
  Object.fromEntries([...(jobs?.jobPrices ?? [])].map(([key, { wei }]) => [key, Number(wei) / 1e18]));
const pathsOf = ({ jobs }: Config) => [...(jobs?.routes?.all.values() ?? [])].map(({ path }) => path);

test('a reload takes prices of routes, and keeps served routes as they are where more of them differs', async () => {
  const started = await readWith(routes('/a/*', '0.01'));

  const dearer = reloadConfig(started, await readWith(routes('/a/*', '0.02')));
  expect(dearer.requireRestart).toEqual([]);
  expect(pricesOf(dearer.config)).toMatchObject({ '7/0': 0.02 });

  const other = `${routes('/b/*', '0.02')}${routes('/c', '5')
    .replace(/^[^]*?(?=\[\[)/, '')
    .replace('job_index = 0', 'job_index = 1')}`;
  const moved = reloadConfig(started, await readWith(other));
  expect(moved.requireRestart).toEqual(['routes']);
  expect(pathsOf(moved.config)).toEqual(['/a/*']);
  expect(pricesOf(moved.config)).toMatchObject({ '7/0': 0.02 });
  expect(pricesOf(moved.config)).not.toHaveProperty('7/1');
});
