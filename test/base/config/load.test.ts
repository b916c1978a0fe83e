import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/base/config/load.ts';
import { ConfigError } from '../../../src/base/config/mistakes.ts';
import {
  bare,
  minimal,
  mistakesIn,
  mistakesOf,
  networks,
  parse,
  parseX402,
  runner,
  wrongs,
} from './support.ts';

describe('a configuration of the mission keys alone', () => {
  const mission = `bind_address = "0.0.0.0:8402"
facilitator_url = "http://127.0.0.1:9000"
rate_per_native_unit = "3200.00"
markup_bps = 200
default_invocation_mode = "disabled"
[[accepted_tokens]]
network = "eip155:8453"
asset = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
symbol = "USDC"
decimals = 6
pay_to = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
eip712_name = "USD Coin"
eip712_version = "2"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
[job_prices.1]
0 = "1000000000000000"`;

  it('is valid, and warns of what the operator did not choose', async () => {
    const { config, warnings } = await parse(mission);
    expect(config.jobs?.networks.size).toBe(0);
    expect(warnings).toEqual([
      expect.stringContaining(
        'receipt_key: is missing: receipt tokens are made with a key that is in the database',
      ),
      expect.stringContaining('quote_key: is missing: each quote is recorded before its answer'),
      expect.stringContaining('SETTLEMENTS ON eip155:8453 ARE NOT CONFIRMED ON THE CHAIN'),
      expect.stringContaining('clients get the address http://127.0.0.1:8402'),
      expect.stringContaining('none serves service 1: its jobs are refused with runner_unavailable'),
    ]);
  });
});

describe('mistakes', () => {
  const wrongFile = `bind_adress = "0.0.0.0:8402"
facilitator_url = "http://facilitator.example"
rate_per_native_unit = 3200.5
markup_bps = -1
features = [
  "x402",
  "pricing",
]

[[accepted_tokens]]
network = "eip155:8453"
asset = "0x12"
symbol = "USDC"
decimals = 6.0
pay_to = "0x70997970C51812dc3A010C7d01b50e0d17dc79C9"
transfer_method = "erc7710"
eip712_name = "USD Coin"

[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "restricted_paid"

[limits]
max_body_byte = 5

[job_prices.1]
0 = "0"
`;

  it('are all reported together, with path and line, in the order of the file', async () => {
    expect(await mistakesIn(wrongFile)).toEqual([
      '- bind_address: is missing',
      '1 bind_adress: is not a known key; did you mean bind_address?',
      '2 facilitator_url: must be https, or http on loopback',
      '3 rate_per_native_unit: must be a decimal string such as "3200.00": a float is not exact',
      '4 markup_bps: must be a whole number from 0 to 1000000',
      '7 features[1]: must be "x402" or "chat"',
      '10 accepted_tokens[0].eip712_version: is missing',
      '12 accepted_tokens[0].asset: is not an address (0x and 40 hex digits)',
      '14 accepted_tokens[0].decimals: must be a whole number from 0 to 36',
      '15 accepted_tokens[0].pay_to: does not satisfy its checksum (EIP-55): look for a mistyped digit',
      '16 accepted_tokens[0].transfer_method: must be "eip3009" or "permit2"',
      '19 job_policies[0].auth_mode: is missing: restricted_paid needs it',
      '19 job_policies[0].net_rpc_url: is missing: restricted_paid needs it',
      '19 job_policies[0].net_contract: is missing: restricted_paid needs it',
      '25 limits.max_body_byte: is not a known key; did you mean max_body_bytes?',
      '28 job_prices.1.0: must be above 0 and below 2^128 wei',
    ]);
  });

  it('make one readable message', async () => {
    const failure = parse(minimal('confirm = "maybe"\nquote_ttl_secs = 5'));
    await expect(failure).rejects.toThrow(ConfigError);
    await expect(failure).rejects.toThrow(
      'The configuration has 2 mistakes:\n' +
        '  conf/gateway.toml:4  confirm: must be "required" or "before" or "after" or "never"\n' +
        '  conf/gateway.toml:5  quote_ttl_secs: must be a whole number from 10 to 86400',
    );
  });

  it('in the syntax have a line too, and do not repeat the source', async () => {
    expect(await mistakesIn('a = 1\n\nb = "secret" x\n')).toEqual([
      expect.stringMatching(/^3 : is not TOML: [^"\n]+$/),
    ]);
    expect(await mistakesIn('a = 1\na = 2')).toEqual([
      expect.stringMatching(/^2 : is not TOML: Defining a key multiple times/),
    ]);
    for (const line of ['b =', 'b', 'b = "x', 'b = tru'])
      expect(await mistakesIn(`a = 1\n${line}\n\nc = 2`)).toEqual([
        expect.stringMatching(/^2 : is not TOML: /),
      ]);
  });

  it('of a file that cannot be read are ConfigErrors', async () => {
    expect(await mistakesOf(loadConfig('/nowhere/at-all.toml', {}))).toEqual([
      '- : cannot be read: there is no such file',
    ]);
  });

  it('name unknown keys in every table, with a hint only when one is close', async () => {
    expect(await wrongs(bare('Log-Level = "info"\nzzz = 1\n[delivery]\ntimeout = 1'))).toEqual([
      'Log-Level: is not a known key; did you mean log_level?',
      'zzz: is not a known key',
      'delivery.timeout: is not a known key; did you mean timeout_ms?',
    ]);
  });

  it('report values that must be tables', async () => {
    const text = bare('accepted_tokens = {}\njob_policies = [1]\nlimits = 3\njob_prices = 4\nnetworks = "x"');
    expect(await wrongs(text)).toEqual([
      'accepted_tokens: must be an array of tables: [[accepted_tokens]]',
      'job_policies[0]: must be a table',
      'limits: must be a table',
      'job_prices: must be a table of prices by service id',
      'networks: must be an array of tables: [[networks]]',
    ]);
  });
});

describe('features', () => {
  it('leave paid jobs undefined when they are off, and require none of their keys', async () => {
    const { config } = await parse('bind_address = "127.0.0.1:0"\nfeatures = []');
    expect(config.jobs).toBeUndefined();
  });

  it('check the keys of a feature that is off', async () => {
    expect(await wrongs(bare('facilitator_url = "ftp://x"\n[[networks]]\nid = "base"'))).toEqual([
      'facilitator_url: is not an http or https URL',
      'networks[0].rpc_url: is missing',
      'networks[0].id: must be eip155 and a chain id, such as "eip155:8453"',
    ]);
  });

  it.each(['jobs', 'pricing', 'x403'])('are refused if one is unknown, as %s is', async (name) => {
    expect(await wrongs(minimal(`features = ["${name}"]`))).toEqual([
      'features[0]: must be "x402" or "chat"',
    ]);
  });

  it('are refused when named twice', async () => {
    expect(await wrongs(minimal('features = ["x402", "x402"]'))).toEqual(['features: names a feature twice']);
  });

  it('require the keys of paid jobs when they are on', async () => {
    expect(await wrongs('bind_address = "127.0.0.1:8402"')).toEqual([
      'facilitator_url: is missing',
      'accepted_tokens: is missing: at least one token must be accepted',
    ]);
  });
});

describe('the bind address and public URL', () => {
  it.each([
    ['127.0.0.1:8402', '127.0.0.1', 8402, 'http://127.0.0.1:8402'],
    ['[::1]:8402', '::1', 8402, 'http://[::1]:8402'],
    ['[::]:80', '::', 80, 'http://[::1]:80'],
    ['localhost:0', 'localhost', 0, 'http://localhost:0'],
  ])('reads %s', async (text, host, port, publicUrl) => {
    const { config } = await parse(`bind_address = "${text}"\nfeatures = []`);
    expect(config.bindAddress).toEqual({ host, port });
    expect(config.publicUrl).toBe(publicUrl);
  });

  it.each([
    '8402',
    ':8402',
    '127.0.0.1',
    '127.0.0.256:1',
    '::1:8402',
    '[127.0.0.1]:1',
    'a b:1',
    '127.0.0.1:65536',
  ])('refuses %s', async (text) => {
    expect(await wrongs(`bind_address = "${text}"\nfeatures = []`)).toEqual([
      expect.stringMatching(/^bind_address: (must be host:port|has a port)/),
    ]);
  });

  it('removes the slash from a public URL and refuses URLs that no path can be appended to', async () => {
    const { config, warnings } = await parse(bare('public_url = "https://jobs.example/a/"'));
    expect(config.publicUrl).toBe('https://jobs.example/a');
    expect(warnings).toEqual([]);
    expect(await wrongs(bare('public_url = "https://jobs.example/?"'))).toEqual([
      'public_url: must not have a query: paths are appended to it',
    ]);
  });
});

describe('the remaining keys', () => {
  it('keep their units', async () => {
    const { config } = await parse(
      bare(`trust_proxy = ["127.0.0.1/8", "::1", "fd00::/8"]
log_level = "debug"
drain_delay_secs = 0
shutdown_grace_secs = 5
[limits]
max_body_bytes = 10
requests_per_minute = 0
[delivery]
timeout_ms = 10_001
`),
    );
    expect(config).toMatchObject({
      trustProxy: ['127.0.0.1/8', '::1', 'fd00::/8'],
      logLevel: 'debug',
      drainDelaySecs: 0,
      shutdownGraceSecs: 5,
      limits: { maxBodyBytes: 10, requestsPerMinute: 0 },
      // the lease of a push ends half a minute after its time limit
      delivery: { timeoutMs: 10_001, leaseSecs: 41 },
    });
  });

  it.each([
    '10.0.0.0/33',
    '::1/129',
    'localhost',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/08',
    'fe80::1%eth0',
  ])('refuse the proxy %s', async (range) => {
    expect(await wrongs(bare(`trust_proxy = ["${range}"]`))).toEqual([
      expect.stringContaining('trust_proxy[0]: must be an address or a range'),
    ]);
  });

  it('require a maxTimeout of more than 6 s beyond the settlement timeout, reported at the key that the file names', async () => {
    expect((await parseX402(minimal('max_timeout_secs = 67') + networks)).maxTimeoutSecs).toBe(67);
    expect(await mistakesIn(minimal('max_timeout_secs = 66'))).toEqual([
      '4 max_timeout_secs: must be at least 67: more than facilitator_settle_timeout_ms and 6 s',
    ]);
    expect(await mistakesIn(minimal('facilitator_settle_timeout_ms = 294_000'))).toEqual([
      '4 facilitator_settle_timeout_ms: must be at most 293999: 6 s less than max_timeout_secs',
    ]);
  });
});

describe('the result', () => {
  it('is deeply frozen, including its maps', async () => {
    const { config } = await parse(minimal() + networks + runner + '[job_prices.1]\n0 = "5"\n');
    const unfrozen: string[] = [];
    const visit = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      if (!Object.isFrozen(value)) unfrozen.push(path);
      for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`);
    };
    visit(config, 'config');
    for (const policy of config.jobs?.networks.values() ?? []) visit(policy, 'network');
    expect(unfrozen).toEqual([]);
    const prices = config.jobs?.jobPrices;
    expect(prices).not.toHaveProperty('set');
    expect(() => Map.prototype.set.call(prices, '1/0', 1n)).toThrow(TypeError);
    expect([...(prices ?? [])]).toEqual([['1/0', { wei: 5n, inUsd: false }]]);
    expect(Reflect.set(config.jobs ?? {}, 'confirm', 'never')).toBe(false);
  });
});
