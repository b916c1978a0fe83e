import * as chains from 'viem/chains';
import { expect, test } from 'vitest';
import { knownNetworks, networkText, walletNetworks } from '../../../src/web/pages/known-networks.ts';

test('a wallet gets the facts that viem has about a network', () => {
  const { mainnet, optimism, polygon, base, arbitrum, avalancheFuji, avalanche } = chains;
  const { polygonAmoy, baseSepolia, sepolia } = chains;
  const all = [
    mainnet,
    optimism,
    polygon,
    base,
    arbitrum,
    avalancheFuji,
    avalanche,
    polygonAmoy,
    baseSepolia,
    sepolia,
  ];
  const expected = all.map(({ id, name, rpcUrls, nativeCurrency, blockExplorers }) => [
    `eip155:${id}`,
    {
      chainName: name,
      rpcUrls: [rpcUrls.default.http[0]],
      nativeCurrency,
      blockExplorerUrls: [blockExplorers.default.url],
    },
  ]);
  expect(knownNetworks).toEqual(Object.fromEntries(expected));
});

test("a wallet never gets the operator's RPC, but for a chain on this machine, which is distinguished from a public one", () => {
  const rpcUrl = 'https://rpc.example/v2/SECRET';
  expect(walletNetworks(new Map([['eip155:8453', { rpcUrl }]]))).toEqual({
    'eip155:8453': knownNetworks['eip155:8453'],
  });
  expect(walletNetworks(new Map([['eip155:999999', { rpcUrl }]]))).toEqual({});
  const local = walletNetworks(new Map([['eip155:84532', { rpcUrl: 'http://127.0.0.1:8545' }]]));
  expect(local['eip155:84532']).toMatchObject({
    chainName: 'Local chain 84532',
    rpcUrls: ['http://127.0.0.1:8545'],
  });
});

test('people see a network by its name, also one on this machine, and an unknown one by its number', () => {
  const configured = new Map([['eip155:84532', { rpcUrl: 'http://127.0.0.1:8545' }] as const]);
  expect(networkText('eip155:84532', configured)).toBe('Local chain 84532');
  expect(networkText('eip155:84532')).toBe('Base Sepolia');
  expect(networkText('eip155:999999')).toBe('Chain 999999');
});
