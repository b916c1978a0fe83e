import { ExactEvmScheme } from '@x402/evm/exact/server';
import { expect, test } from 'vitest';
import { facilitatorPresets, networkPresets, tokenPresets } from '../../../src/base/config/presets.ts';
import { secureBaseUrl } from '../../../src/base/config/urls.ts';
import { facilitatorKey } from '../../support/facilitator-key.ts';
import { minimal, mistakesIn, parseX402 } from './support.ts';

const tokens = Object.entries(tokenPresets);

test.each(tokens)(
  'the preset %s is the token that the official package takes for a dollar',
  async (_, preset) => {
    const official = await new ExactEvmScheme().parsePrice('$1.5', preset.network);
    expect({ ...official, asset: official.asset.toLowerCase() }).toMatchObject({
      amount: '1500000',
      asset: preset.asset,
      extra: { name: preset.eip712Name, version: preset.eip712Version },
    });
  },
);

test('each network has its own token, and its first facilitator needs no key', () => {
  const networks = Object.entries(networkPresets);
  expect(networks.map(([name]) => `${name}/USDC`)).toEqual(tokens.map(([name]) => name));
  for (const [name, { token, facilitators }] of networks) {
    expect(token).toBe(`${name}/USDC`);
    expect(facilitatorPresets[facilitators[0]].key).toBe('none');
  }
  for (const { url } of Object.values(facilitatorPresets)) expect(secureBaseUrl.parse(url)).toBe(url);
});

const payTo = 'pay_to = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"\n';
const withTable = (keys: string) =>
  minimal().replace(/^\[\[accepted_tokens[^]*/m, `[[accepted_tokens]]\n${keys}${payTo}`);

test('a preset stands for all keys of a token but pay_to, and prices in dollars need no rate', async () => {
  const text = withTable('preset = "polygon/USDC"\n').replace(/^rate_per.*\n/m, '');
  const { acceptedTokens } = await parseX402(`${text}[job_prices.1]\n0 = "0.01 USD"\n`);
  expect(acceptedTokens).toMatchObject([
    { ...tokenPresets['polygon/USDC'], chainId: 137, payTo: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' },
  ]);
});

test('a preset that does not exist, and a key that says what the preset says, are mistakes', async () => {
  expect(await mistakesIn(withTable('preset = "base/USDT"\n'))).toContainEqual(
    expect.stringMatching(/^7 accepted_tokens\[0\]\.preset: must be "base-sepolia\/USDC" or/),
  );
  expect(await mistakesIn(withTable('preset = "base/USDC"\nsymbol = "USDT"\ndecimals = 18\n'))).toEqual([
    '8 accepted_tokens[0].symbol: is what preset says: leave out one of the two',
    '9 accepted_tokens[0].decimals: is what preset says: leave out one of the two',
  ]);
});

test.each([
  [
    'a public half of another key',
    'an-id:',
    64,
    [expect.stringMatching(/^4 facilitator_token: has a colon, so/)],
  ],
  ['a key of 63 bytes', 'an-id:', 63, [expect.stringMatching(/^4 facilitator_token: has a colon, so/)]],
  ['a key without an id', ':', 64, [expect.stringMatching(/^4 facilitator_token: has a colon, so/)]],
  ['a seed alone', 'an-id:', 32, [expect.stringMatching(/^4 facilitator_token: has a colon, so/)]],
])('the facilitator’s key that signs requests is whole: %s', async (_, id, bytes, mistakes) => {
  const file = `${id}${Buffer.alloc(bytes, 7).toString('base64')}`;
  expect(await mistakesIn(minimal('facilitator_token = "file:x"'), { 'conf/x': file })).toEqual(mistakes);
});

test('a key of the form that portals give is accepted', async () => {
  expect(
    await mistakesIn(minimal('facilitator_token = "file:x"'), { 'conf/x': facilitatorKey().secret }),
  ).toEqual([]);
});
