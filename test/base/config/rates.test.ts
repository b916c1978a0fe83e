import { expect, test } from 'vitest';
import { minimal, networks, parseX402, wrongs } from './support.ts';

const http = 'kind = "http"\nurl = "https://prices.example/eth"\npointer = "/price"\n';
const contract = `contract = "0x${'a1'.repeat(20)}"\n`;
const onChain = `network = "eip155:8453"\n${contract}`;
const chainlink = `kind = "chainlink"\n${onChain}`;
const nativeToken = `native_token = "0x${'b2'.repeat(20)}"\n`;
const pool = `kind = "uniswap_v3"\n${onChain}${nativeToken}`;

const tables = (sources: readonly string[]): string =>
  sources.map((source) => `[[accepted_tokens.rates]]\n${source}`).join('');
const withSources = (sources: readonly string[], keys = ''): string =>
  `${minimal().replace('rate_per_native_unit = "3200.00"\n', '')}${keys}${tables(sources)}${networks}`;

test('the sources of a rate have defaults', async () => {
  const { acceptedTokens } = await parseX402(withSources([http, chainlink, pool]));
  const chain = { chainId: 8453, rpcUrl: 'https://rpc.example', contract: `0x${'a1'.repeat(20)}` };
  expect(acceptedTokens[0]?.rateTerms).toMatchObject({
    maxAgeSecs: 120,
    maxDeviationBps: 100,
    minSources: 2,
    bound: undefined,
    sources: [
      { name: 'source-1', maxAgeSecs: 120, kind: 'http', timePointer: undefined, inverse: false },
      { ...chain, name: 'source-2', kind: 'chainlink', sequencerFeed: undefined, sequencerGraceSecs: 3_600 },
      { ...chain, name: 'source-3', kind: 'uniswap_v3', windowSecs: 1_800 },
    ],
  });
});

test.each([
  ['of no kind', [http.replace('"http"', '"median"')]],
  ['without a kind', ['url = "https://prices.example/eth"\n']],
  ['without a URL', [http.replace(/url.*\n/, '')]],
  ['with a URL over plain http', [http.replace('https:', 'http:')]],
  ['with a pointer that is none', [http.replace('"/price"', '"price"')]],
  ['with a pointer of a wrong escape', [http.replace('"/price"', '"/a~2"')]],
  ['with a key of another kind', [`${http}native_token = "0x${'1'.repeat(40)}"\n`]],
  ['with an unknown key', [`${http}cache_secs = 60\n`]],
  ['of an aggregator without a contract', [chainlink.replace(/contract.*\n/, '')]],
  ['of an aggregator at no address', [chainlink.replace(/0x.{40}/, '0x12')]],
  ['of an aggregator on no EVM chain', [chainlink.replace('eip155:8453', 'solana:1')]],
  ['of a pool without its native token', [pool.replace(/native_token.*\n/, '')]],
  ['of a pool with an inverse', [`${pool}inverse = true\n`]],
  ['that may be one second old', [`${http}max_age_secs = 1\n`]],
] satisfies [string, string[]][])('a source %s is refused', async (_, sources) => {
  expect(await wrongs(withSources(sources))).toEqual([
    expect.stringMatching(/^accepted_tokens\[0\]\.rates\[\d\]/),
  ]);
});

test.each([
  ['no source at all', 'rates = []\n', [], 'rates'],
  ['17 sources', '', Array.from({ length: 17 }, () => http), 'rates'],
  ['a bound without how far from it', 'rate_per_native_unit = "3200"\n', [http], 'rate_bound_bps'],
  ['a limit of a bound without the bound', 'rate_bound_bps = 500\n', [http], 'rate_per_native_unit'],
  ['a deviation above the whole', 'rate_max_deviation_bps = 10001\n', [http], 'rate_max_deviation_bps'],
] satisfies [string, string, string[], string][])(
  'a token with %s is refused',
  async (_, keys, sources, key) => {
    expect(await wrongs(withSources(sources, keys))).toEqual([
      expect.stringMatching(new RegExp(`^accepted_tokens\\[0\\]\\.${key}: `)),
    ]);
  },
);

test('keys about sources are refused if the rate is fixed: they would be ignored', async () => {
  for (const key of ['rate_max_deviation_bps', 'rate_bound_bps'])
    expect(await wrongs(`${minimal()}${key} = 5\n`)).toEqual([
      expect.stringContaining(`accepted_tokens[0].${key}: would be ignored`),
    ]);
});
