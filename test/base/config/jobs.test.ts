import { describe, expect, it } from 'vitest';
import { plainDiscovery } from '../../../src/base/values/discovery.ts';
import { bare, minimal, mistakesIn, networks, parse, parseX402, token, wrongs } from './support.ts';

const restricted = `auth_mode = "payer_is_caller"
net_rpc_url = "https://rpc.example"
net_contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
`;

function policy(job: string, mode: string, extra = ''): string {
  const [service, index] = job.split('/');
  return `[[job_policies]]\nservice_id = ${service}\njob_index = ${index}\ninvocation_mode = "${mode}"\n${extra}`;
}

function payingTo(payTo: string): string {
  return minimal().replace(/pay_to = ".*"/, `pay_to = "${payTo}"`);
}

/** A job that anyone may call, with more keys. */
function publicJob(extra: string): string {
  return bare(policy('1/0', 'public_paid', extra));
}

describe('accepted tokens', () => {
  it('take the default rate and markup, or their own; addresses are lower-cased', async () => {
    const own = token.replace('8453', '1') + 'rate_per_native_unit = 7\nmarkup_bps = 5\n';
    const { acceptedTokens } = await parseX402(minimal('markup_bps = 200') + own);
    expect(acceptedTokens).toEqual([
      {
        network: 'eip155:8453',
        chainId: 8453,
        asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
        symbol: 'USDC',
        decimals: 6,
        payTo: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
        transferMethod: 'eip3009',
        eip712Name: 'USD Coin',
        eip712Version: '2',
        ratePerNativeUnit: { numerator: 320_000n, scale: 2 },
        markupBps: 200,
      },
      expect.objectContaining({ chainId: 1, ratePerNativeUnit: { numerator: 7n, scale: 0 }, markupBps: 5 }),
    ]);
  });

  it('need a default rate only if a token has no rate', async () => {
    const text = minimal().replace('rate_per_native_unit = "3200.00"\n', '');
    expect(await mistakesIn(text)).toEqual([
      '- rate_per_native_unit: is missing: accepted_tokens[0] has no rate',
    ]);
    expect(await mistakesIn(`${text}rate_per_native_unit = "1"`)).toEqual([]);
  });

  it.each([
    '"0"',
    '"0.00"',
    '"-1"',
    '-1',
    '0',
    '"1e3"',
    '".5"',
    '"1."',
    '"01"',
    `"${'1'.repeat(31)}"`,
    '3.0',
    'true',
  ])('refuse the rate %s', async (rate) => {
    expect(await wrongs(bare(`rate_per_native_unit = ${rate}`))).toHaveLength(1);
  });

  it('accept a rate of 30 digits', async () => {
    expect(await wrongs(bare(`rate_per_native_unit = "0.${'1'.repeat(29)}"`))).toEqual([]);
  });

  it('may not repeat network and asset, in any letter case', async () => {
    const again = token.replace(
      '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      '0x833589FCD6EDB6E08F4C7C32D4F71B54BDA02913',
    );
    expect(await mistakesIn(minimal() + again)).toEqual([
      '16 accepted_tokens[1].asset: repeats the network and asset of accepted_tokens[0]',
    ]);
  });

  it('may not have the symbol of another token of the network, in any letter case: runners name it by its symbol', async () => {
    const second = token.replace('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', `0x${'a5'.repeat(20)}`);
    expect(await mistakesIn(minimal() + second.replace('"USDC"', '"usdc"'))).toEqual([
      expect.stringContaining('accepted_tokens[1].symbol: is also the symbol of accepted_tokens[0]'),
    ]);
    const elsewhere = second.replace('eip155:8453', 'eip155:137');
    expect(await mistakesIn(minimal() + elsewhere)).toEqual([]);
  });

  it('may not pay to the token itself or to the zero address', async () => {
    expect(await wrongs(payingTo('0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'))).toEqual([
      'accepted_tokens[0].pay_to: is the token itself: payments to it would be lost',
    ]);
    expect(await wrongs(payingTo(`0x${'0'.repeat(40)}`))).toEqual([
      'accepted_tokens[0].pay_to: is the zero address',
    ]);
  });

  it.each([
    ['symbol = "USDC"', 'symbol = "US DC"'],
    ['symbol = "USDC"', 'symbol = "SEVENTEEN-LETTERS"'],
    ['decimals = 6', 'decimals = 37'],
    ['decimals = 6', 'decimals = "6"'],
    ['"USD Coin"', '"USD\\nCoin"'],
    ['"USD Coin"', '""'],
    ['"USD Coin"', `"${'x'.repeat(65)}"`],
    ['eip712_version = "2"', 'eip712_version = 2'],
    ['"eip155:8453"', '"eip155:08453"'],
    ['"eip155:8453"', '"solana:mainnet"'],
  ])('refuse %s as %s', async (good, bad) => {
    expect(await wrongs(minimal().replace(good, bad))).toHaveLength(1);
  });
});

describe('policies', () => {
  it('are found by job', async () => {
    const text = minimal() + policy('1/0', 'public_paid') + policy('1/1', 'restricted_paid', restricted);
    const { jobPolicies } = await parseX402(text);
    expect([...jobPolicies.keys()]).toEqual(['1/0', '1/1']);
    expect(jobPolicies.get('1/0')).toEqual({
      maxRunnerSilenceSecs: 0,
      netServiceIdType: 'uint64',
      priority: 0,
      maxPerKey: 1,
      serviceId: 1,
      jobIndex: 0,
      invocationMode: 'public_paid',
      discoverable: true,
      discovery: plainDiscovery(undefined),
    });
    expect(jobPolicies.get('1/1')).toEqual({
      netServiceIdType: 'uint64',
      priority: 0,
      maxPerKey: 1,
      serviceId: 1,
      jobIndex: 1,
      invocationMode: 'restricted_paid',
      maxRunnerSilenceSecs: 0,
      authMode: 'payer_is_caller',
      netRpcUrl: 'https://rpc.example',
      netContract: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
      discoverable: true,
      discovery: plainDiscovery(undefined),
    });
  });

  it('name and describe a job in one line each', async () => {
    const text = (name: string) => bare(policy('1/0', 'disabled', `name = ${name}`));
    const keys = 'name = "Übersetzung 👩‍💻"\ndescription = "Two languages"';
    const { jobPolicies } = await parseX402(minimal() + policy('1/0', 'disabled', keys));
    expect(jobPolicies.get('1/0')).toMatchObject({ name: 'Übersetzung 👩‍💻', description: 'Two languages' });
    const oneLine = 'must be one line, without blanks at its ends and without control characters';
    for (const wrong of ['""', '" a"', '"a "', '"a\\nb"', '"a\\u2028b"', '"a\\u202Eb"', '"a\\u0007b"'])
      expect(await wrongs(text(wrong))).toEqual([`job_policies[0].name: ${oneLine}`]);
    expect(await wrongs(text(`"${'a'.repeat(65)}"`))).toEqual([
      'job_policies[0].name: must have at most 64 characters',
    ]);
  });

  it('keep a job out of discovery', async () => {
    const hidden = policy('1/0', 'public_paid', 'discoverable = false\n');
    const { jobPolicies } = await parseX402(minimal() + hidden + policy('1/1', 'public_paid'));
    expect([...jobPolicies.values()].map(({ discovery }) => discovery !== undefined)).toEqual([false, true]);
  });

  it('list a job without schemas that discovery cannot carry, with a warning', async () => {
    const text = minimal() + policy('1/0', 'public_paid', 'input_schema_file = "in.json"\n');
    const warned = async (schema: object) => {
      const { config, warnings } = await parse(text, { 'conf/in.json': JSON.stringify(schema) });
      expect(config.jobs?.jobPolicies.get('1/0')?.discovery).toEqual(plainDiscovery('application/json'));
      return warnings.filter((line) => line.includes('left out of discovery'));
    };
    expect(await warned({ type: 'string', pattern: '^[0-9]{4}$' })).toHaveLength(1);
    expect(await warned({ type: 'object', description: 'x'.repeat(3_000) })).toHaveLength(1);
  });

  it('refuse restricted fields where they would be ignored', async () => {
    expect(await wrongs(bare(policy('1/0', 'public_paid', restricted)))).toEqual([
      'job_policies[0].auth_mode: would be ignored: anyone may call a public_paid job',
      'job_policies[0].net_rpc_url: would be ignored: anyone may call a public_paid job',
      'job_policies[0].net_contract: would be ignored: anyone may call a public_paid job',
    ]);
  });

  it('allow a disabled job all restricted fields or none', async () => {
    expect(await wrongs(bare(policy('1/0', 'disabled', restricted)))).toEqual([]);
    expect(await wrongs(bare(policy('1/0', 'disabled')))).toEqual([]);
    expect(await wrongs(bare(policy('1/0', 'disabled', 'auth_mode = "payer_is_caller"')))).toEqual([
      'job_policies[0].net_rpc_url: is missing: auth_mode cannot stand without it',
      'job_policies[0].net_contract: is missing: auth_mode cannot stand without it',
    ]);
  });

  it('may not repeat a job', async () => {
    const text = bare(policy('1/0', 'disabled') + policy('2/0', 'disabled') + policy('1/0', 'disabled'));
    expect(await mistakesIn(text)).toEqual(['11 job_policies[2]: repeats job 1/0 of job_policies[0]']);
  });

  it.each([
    ['priority', ['-100', '0', '100'], ['-101', '101', '1.5', '"high"'], 'a whole number from -100 to 100'],
    ['max_concurrent', ['1', '10_000'], ['0', '10_001', '-1', 'true'], 'a whole number from 1 to 10000'],
  ])('accept a %s within its bounds and refuse any other', async (key, fits, wrong, expected) => {
    for (const value of fits)
      expect(await wrongs(bare(policy('1/0', 'disabled', `${key} = ${value}\n`)))).toEqual([]);
    for (const value of wrong)
      expect(await wrongs(bare(policy('1/0', 'disabled', `${key} = ${value}\n`)))).toEqual([
        `job_policies[0].${key}: must be ${expected}`,
      ]);
  });

  it('accept what orders calls, and refuse what would order none', async () => {
    for (const by of ['job', 'header:X-Tenant', `header:${'a'.repeat(64)}`])
      expect(await wrongs(publicJob(`order_by = "${by}"\nmax_per_key = 1000\n`))).toEqual([]);
    expect(await wrongs(publicJob('order_by = "job"\nskip_after_failures = "never"\n'))).toEqual([]);
    for (const by of [
      'payer',
      'header:',
      'header:a b',
      'header:a:b',
      'header:-a',
      `header:${'a'.repeat(65)}`,
      '',
    ])
      expect(await wrongs(publicJob(`order_by = "${by}"\n`))).toEqual([
        'job_policies[0].order_by: must be "caller", "job" or "header:NAME"',
      ]);
    expect(await wrongs(publicJob('order_by = "caller"\n'))).toEqual([
      'job_policies[0].order_by: a public_paid job has no callers: use "job" or "header:NAME"',
    ]);
    expect(await wrongs(publicJob('max_per_key = 2\nskip_after_failures = 3\n'))).toEqual([
      'job_policies[0].max_per_key: would be ignored: order_by is missing',
      'job_policies[0].skip_after_failures: would be ignored: order_by is missing',
    ]);
    expect(await wrongs(publicJob('order_by = "job"\nskip_after_failures = "always"\n'))).toEqual([
      'job_policies[0].skip_after_failures: must be a whole number from 1 to 1000, or "never"',
    ]);
  });

  it('accept ids up to their bounds and refuse larger ones', async () => {
    expect(await wrongs(bare(policy('9007199254740991/4294967295', 'disabled')))).toEqual([]);
    expect(await wrongs(bare(policy('9007199254740992/4294967296', 'disabled')))).toEqual([
      'job_policies[0].service_id: must be a whole number from 0 to 9007199254740991',
      'job_policies[0].job_index: must be a whole number from 0 to 4294967295',
    ]);
    expect(await wrongs(bare(policy('99999999999999999999/-1', 'disabled')))).toHaveLength(2);
  });

  it('warn when an open job has no price', async () => {
    const { warnings } = await parse(
      minimal() + networks + policy('1/0', 'public_paid') + policy('1/1', 'disabled'),
    );
    expect(warnings).toContain(
      'conf/gateway.toml:17  job_policies[0]: job 1/0 has no price, so it is unknown to clients',
    );
    expect(warnings.join()).not.toContain('job 1/1');
  });
});

describe('the default invocation mode', () => {
  it('may be restricted only if every priced job has a policy', async () => {
    const text = minimal('default_invocation_mode = "restricted_paid"') + policy('1/0', 'public_paid');
    expect(await wrongs(`${text}[job_prices.1]\n0 = "1"`)).toEqual([]);
    expect(await wrongs(`${text}[job_prices.1]\n0 = "1"\n1 = "1"`)).toEqual([
      'default_invocation_mode: restricted_paid needs a policy for every priced job, and 1/1 has no policy',
    ]);
  });
});

describe('prices', () => {
  const file = minimal('job_prices_file = "prices.toml"') + networks;

  it('are read from the configuration, by service and job', async () => {
    const { jobPrices } = await parseX402(
      `${minimal()}[job_prices.1]\n0 = "1000000000000000"\n[job_prices]\n2.0 = "7"`,
    );
    expect([...jobPrices]).toEqual([
      ['1/0', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['2/0', { wei: 7n, inUsd: false }],
    ]);
  });

  it('are read from a file relative to the configuration', async () => {
    const { jobPrices } = await parseX402(file, { 'conf/prices.toml': '[1]\n0 = "1000"\n' });
    expect([...jobPrices]).toEqual([['1/0', { wei: 1_000n, inUsd: false }]]);
  });

  it('are refused in both places', async () => {
    expect(await mistakesIn(`${file}[job_prices.1]\n0 = "1"`)).toEqual([
      '4 job_prices_file: excludes job_prices: name one of them',
    ]);
  });

  it('report mistakes of their own file with its name and line, together with those of the main file', async () => {
    const failure = parse(`${file}[limits]\nmax_body_bytes = 0`, {
      'conf/prices.toml': '# prices\n[1]\n0 = "1.5"\nx = "1"',
    });
    await expect(failure).rejects.toThrow(
      'The configuration has 3 mistakes:\n' +
        '  conf/gateway.toml:19  limits.max_body_bytes: must be a whole number from 1 to 67108864\n' +
        '  conf/prices.toml:3  1.0: must be dollars, such as "0.01 USD", or wei as a string of digits, such as "1000000000000000"\n' +
        '  conf/prices.toml:4  1.x: is not a job index',
    );
  });

  it('report a file that is missing or is not TOML', async () => {
    expect(await mistakesIn(file)).toEqual([
      '4 job_prices_file: conf/prices.toml cannot be read: there is no such file',
    ]);
    expect(await mistakesIn(file, { 'conf/prices.toml': '\n[1' })).toEqual([
      expect.stringMatching(/^2 : is not TOML/),
    ]);
  });

  it.each([
    '1000',
    '"0"',
    '"-1"',
    '"01"',
    '"0x10"',
    '1.5',
    '"1.5"',
    '"1e18"',
    `"${2n ** 128n}"`,
    `"${2n ** 256n}"`,
    '{ a = 1 }',
  ])('refuse %s', async (price) => {
    expect(await mistakesIn(bare(`[job_prices.1]\n0 = ${price}`))).toEqual([
      expect.stringMatching(/^4 job_prices\.1\.0: /),
    ]);
  });

  it('accept the largest and the smallest price', async () => {
    expect(await wrongs(bare(`[job_prices.1]\n0 = "1"\n4294967295 = "${2n ** 128n - 1n}"`))).toEqual([]);
  });

  it('refuse keys that are no service id or job index', async () => {
    expect(
      await wrongs(bare('[job_prices]\n7 = "1"\n9007199254740992.0 = "1"\n1.4294967296 = "1"\n01.0 = "1"')),
    ).toEqual([
      'job_prices.7: must be a table of prices by job index',
      'job_prices.9007199254740992: is not a service id',
      'job_prices.1.4294967296: is not a job index',
      'job_prices.01: is not a service id',
    ]);
  });

  it('cause a warning if there are none', async () => {
    const { warnings } = await parse(minimal() + networks);
    expect(warnings).toEqual(['conf/gateway.toml  no job has a price, so every job is unknown to clients']);
  });
});

describe('networks', () => {
  it('are those of accepted tokens, as configured', async () => {
    const text = `${minimal()}${networks}[[networks]]\nid = "eip155:1"\nrpc_url = "https://other.example"\n`;
    const x402 = await parseX402(text);
    expect([...x402.networks]).toEqual([
      [
        'eip155:8453',
        { rpcUrl: 'https://rpc.example', source: 'configured', at: ['networks', 0, 'rpc_url'] },
      ],
    ]);
  });

  it('have the public RPC of their chain only if the configuration says so, with a warning', async () => {
    const withPublic = networks.replace('https://rpc.example', 'public');
    const { config, warnings } = await parse(minimal() + withPublic);
    expect(config.jobs?.networks.get('eip155:8453')?.rpcUrl).toBe('https://mainnet.base.org');
    expect(warnings.join('\n')).toContain(
      'the public RPC https://mainnet.base.org is believed about eip155:8453',
    );
    expect((await parse(minimal())).config.jobs?.networks.size).toBe(0);
    const unknown = (minimal() + withPublic).replaceAll('eip155:8453', 'eip155:999999999999');
    expect((await mistakesIn(unknown)).join()).toContain('no public RPC of eip155:999999999999 is known');
  });

  it('may not repeat', async () => {
    expect(await mistakesIn(bare(networks + networks))).toEqual([
      '7 networks[1].id: repeats the id of networks[0]',
    ]);
  });

  it('warn in capitals when no RPC confirms settlements', async () => {
    const { config, warnings } = await parse(minimal().replace('eip155:8453', 'eip155:999999999999'));
    expect(config.jobs?.networks.size).toBe(0);
    expect(warnings.join('\n')).toContain(
      'SETTLEMENTS ON eip155:999999999999 ARE NOT CONFIRMED ON THE CHAIN',
    );
  });
});

describe('confirm = "required"', () => {
  it('is refused if no RPC can confirm settlements', async () => {
    const text = minimal('confirm = "required"').replace('eip155:8453', 'eip155:999999999999');
    expect(await mistakesIn(text)).toEqual([
      '- networks: confirm = "required" needs an rpc_url for eip155:999999999999',
    ]);
  });
});

describe('the facilitator', () => {
  it('gets its options and a token from the environment or a file', async () => {
    const options = 'facilitator_verify = false\nfacilitator_settle_timeout_ms = 2\n';
    const byEnv = await parseX402(minimal(`${options}facilitator_token = "env:FACILITATOR_TOKEN"`));
    expect(byEnv).toMatchObject({
      facilitators: [
        {
          name: undefined,
          label: 'facilitator.example',
          url: 'https://facilitator.example/x402',
          tokens: ['secret'],
          walletFactories: [],
        },
      ],
      facilitatorVerify: false,
      facilitatorVerifyTimeoutMs: 10_000,
      facilitatorSettleTimeoutMs: 2,
    });
    const byFile = await parseX402(minimal('facilitator_token = "file:/run/token"'), {
      '/run/token': 'from-file\n',
    });
    expect(byFile.facilitators[0]?.tokens).toEqual(['from-file']);
  });

  it('has no token when none is named', async () => {
    expect((await parseX402(minimal())).facilitators[0]?.tokens).toBeUndefined();
  });

  it('reports a missing or empty token', async () => {
    expect(await mistakesIn(minimal('facilitator_token = "env:NOT_SET"'))).toEqual([
      '4 facilitator_token: the environment variable NOT_SET is not set',
    ]);
    expect(await mistakesIn(minimal('facilitator_token = "file:x"'), { 'conf/x': ' \n' })).toEqual([
      '4 facilitator_token: conf/x is empty',
    ]);
  });
});
