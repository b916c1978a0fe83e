import { describe, expect, it } from 'vitest';
import { publicRpcUrls } from '../../../src/base/config/networks.ts';
import { plainHttpWarning } from '../../../src/base/config/hosts.ts';
import { bare, minimal, mistakesOf, parse, wrongs } from './support.ts';

const rpc = (url: string) => parse(bare(`[[networks]]\nid = "eip155:1"\nrpc_url = "${url}"`));

describe('URLs', () => {
  it.each(['http://127.9.9.9:1', 'http://[::1]/x', 'http://localhost:8413', 'https://facilitator.example'])(
    'may name the facilitator %s',
    async (url) => {
      expect(await wrongs(bare(`facilitator_url = "${url}"`))).toEqual([]);
    },
  );

  it.each([
    ['http://10.0.0.1', 'must be https'],
    ['http://localhost.example', 'must be https'],
    ['http://127.0.0.1.example', 'must be https'],
    ['https://me:hush@facilitator.example', 'must not contain credentials'],
    ['https://me@facilitator.example', 'must not contain credentials'],
    ['https:/facilitator.example', 'is not an http or https URL'],
    ['https://a b', 'is not an http or https URL'],
    ['https://facilitator.example/#x', 'must not have a fragment'],
    ['https://facilitator.example/?k=v', 'must not have a query'],
  ])('may not name the facilitator %s', async (url, message) => {
    const found = await wrongs(bare(`facilitator_url = "${url}"`));
    expect(found).toEqual([expect.stringContaining(message)]);
    expect(found.join()).not.toContain('hush');
  });

  it('may not have credentials, and no warning repeats the path of one', async () => {
    const { warnings } = await rpc('http://node.example/?key=1');
    expect(warnings.join()).not.toContain('key=1');
    expect(await wrongs(bare('[[networks]]\nid = "eip155:1"\nrpc_url = "https://u:p@node.example"'))).toEqual(
      [expect.stringContaining('networks[0].rpc_url: must not contain credentials')],
    );
  });
});

const source = `${minimal().replace('rate_per_native_unit = "3200.00"\n', '')}[[accepted_tokens.rates]]\n`;
const restricted =
  'invocation_mode = "restricted_paid"\nauth_mode = "payer_is_caller"\nservice_id = 1\njob_index = 0\n';

/** Every URL that decides about money: the path of its key, and a file with the key at the end. */
const moneyUrls: readonly (readonly [path: string, text: string])[] = [
  ['public_url', `${bare('')}public_url`],
  ['networks[0].rpc_url', bare('[[networks]]\nid = "eip155:1"\nrpc_url')],
  [
    'job_policies[0].net_rpc_url',
    `${minimal()}[[job_policies]]\n${restricted}net_contract = "0x${'a2'.repeat(20)}"\nnet_rpc_url`,
  ],
  ['runners[0].url', bare('[[runners]]\nservices = [1]\nmode = "push"\ntoken = "env:RUNNER_TOKEN"\nurl')],
  ['facilitator_url', `${bare('')}facilitator_url`],
  ['accepted_tokens[0].rates[0].url', `${source}kind = "http"\npointer = "/a"\nurl`],
  ['upstreams[0].base_url', bare('[[upstreams]]\nname = "a"\nbase_url')],
  ['alerts.webhook', bare('[alerts]\nwebhook')],
  ['discovery.url', `${minimal()}[discovery]\nurl`],
];

/** The mistakes, or if there is none, the warnings. */
async function findings(text: string): Promise<string[]> {
  const loading = parse(text);
  const mistakes = await mistakesOf(loading);
  return mistakes.length > 0 ? mistakes : [...(await loading).warnings];
}

describe('a URL that decides about money', () => {
  it.each(moneyUrls)(
    'is refused or warned of over plain http to another host, with its line: %s',
    async (path, text) => {
      const line = text.split('\n').length;
      for (const url of [
        'http://node',
        'http://10.0.0.7:1',
        'HTTP://node.example/x',
        'http://0.0.0.0',
        'http://127.0.0.1.example',
      ]) {
        const found = await findings(`${text} = "${url}"\n`);
        const [first = ''] = found.filter((one) => one.includes(`${path}: `));
        expect(first).toMatch(/: (?:is plain http to another host|must be https)/);
        expect(first).toMatch(new RegExp(`^(?:conf/gateway\\.toml:)?${line} `));
      }
      for (const url of [
        'https://peer.example',
        'http://127.0.0.1:1',
        'http://[::1]:1',
        'http://localhost:1',
      ])
        expect((await findings(`${text} = "${url}"\n`)).join()).not.toMatch(/plain http|must be https/);
    },
  );

  it('is warned of whatever its key is called: no new one can be forgotten', () => {
    expect(plainHttpWarning('new_url', 'http://10.0.0.7')).toContain('is plain http');
    expect(plainHttpWarning('new_rpc_url', 'http://10.0.0.7')).toContain('believes of the chain');
    expect(plainHttpWarning('name', 'http://10.0.0.7')).toBe(undefined);
  });

  it('is no public RPC over plain http: viem knows some', async () => {
    const known = await publicRpcUrls(new Set([8453, 31337, 23452]));
    expect(known.get(8453)).toMatch(/^https:/);
    expect(known.get(31337)).toBe('http://127.0.0.1:8545');
    expect(known.has(23452)).toBe(false);
  });
});
