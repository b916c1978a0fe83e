import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/base/config/load.ts';
import { registryAddress } from '../../../src/devnet/registry.ts';

describe('the configurations in config/', () => {
  it('example.toml is a file of at most forty lines that needs a token of a runner alone', async () => {
    const { config, warnings } = await loadConfig('config/example.toml', {
      RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
    });
    expect(warnings).toEqual([
      expect.stringContaining('receipt_key: is missing'),
      expect.stringContaining('quote_key: is missing'),
    ]);
    expect(config.jobs?.jobPolicies.get('1/0')?.invocationMode).toBe('public_paid');
    expect(config.runners).toMatchObject([{ services: [1], mode: 'lease' }]);
    expect((await readFile('config/example.toml', 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(
      40,
    );
  });

  it('dev.toml loads and holds what the devnet deploys', async () => {
    const { config, warnings } = await loadConfig('config/dev.toml', {
      TOLLBOOK_RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
    });
    // `npm start` adds the keys that it makes
    expect(warnings).toEqual([
      expect.stringContaining('receipt_key: is missing'),
      expect.stringContaining('quote_key: is missing'),
    ]);
    expect(config.limits.requestsPerMinute).toBe(0);
    expect(config.runners).toMatchObject([
      { services: [1], mode: 'push', url: 'http://127.0.0.1:8414/calls' },
      { name: 'poller', services: [2], mode: 'lease' },
    ]);
    expect(
      config.jobs?.acceptedTokens.map(({ symbol, ratePerNativeUnit, markupBps }) => [
        symbol,
        ratePerNativeUnit,
        markupBps,
      ]),
    ).toEqual([
      ['USDC', { numerator: 320_000n, scale: 2 }, 200],
      ['EURC', { numerator: 295_000n, scale: 2 }, 200],
      ['PUSD', { numerator: 320_000n, scale: 2 }, 200],
    ]);
    expect([...(config.jobs?.jobPrices ?? [])]).toEqual([
      ['1/0', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['1/1', { wei: 1n, inUsd: false }],
      ['1/2', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['1/3', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['1/4', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['1/5', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['2/0', { wei: 1_000_000_000_000_000n, inUsd: false }],
      ['3/0', { wei: 10_000_000_000_000_000n, inUsd: true }],
      ['3/1', { wei: 20_000_000_000_000_000n, inUsd: true }],
      ['3/2', { wei: 60_000_000_000_000_000n, inUsd: true }],
      ['3/3', { wei: 1_000_000_000_000_000_000n, inUsd: true }],
    ]);
    const registry = { netRpcUrl: 'http://127.0.0.1:8412', netContract: registryAddress };
    const delegated = { ...registry, authMode: 'delegated_caller_signature' };
    expect([...(config.jobs?.jobPolicies ?? [])]).toMatchObject([
      ['1/0', { invocationMode: 'public_paid' }],
      ['1/1', { invocationMode: 'public_paid' }],
      ['1/3', { invocationMode: 'restricted_paid', authMode: 'payer_is_caller', ...registry }],
      ['1/4', { invocationMode: 'restricted_paid', ...delegated }],
      ['1/5', { invocationMode: 'disabled', ...delegated }],
      ['2/0', { invocationMode: 'public_paid' }],
      ['3/0', { invocationMode: 'public_paid' }],
      ['3/1', { invocationMode: 'public_paid' }],
      ['3/2', { invocationMode: 'public_paid' }],
      ['3/3', { invocationMode: 'public_paid' }],
    ]);
    expect(config.chat).toMatchObject({
      upstreams: [{ name: 'devnet', baseUrl: 'http://127.0.0.1:8415/v1' }],
      models: [
        { name: 'devnet-small', price: undefined },
        { name: 'devnet-large', price: { inputNanosPerMillion: 2_500_000_000n } },
      ],
    });
  });
});
