import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/base/config/config.ts';
import { loadConfig } from '../../../src/base/config/load.ts';
import { registryAddress } from '../../../src/devnet/registry.ts';
import { parse } from './support.ts';

const exampleEnv = {
  RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
  FACILITATOR_TOKEN: 'x',
  RECEIPT_KEY: 'a-receipt-key-of-thirty-two-chars',
  QUOTE_KEY: 'a-key-of-quotes-of-thirty-two-chars',
  UPSTREAM_KEY: 'an-upstream-key',
  ORDERS_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  IDENTITY_SECRET: 'a-secret-of-thirty-two-characters',
  GOOGLE_SECRET: 'a-client-secret',
};

describe('the configurations in config/', () => {
  it('example.toml loads without a warning', async () => {
    const { config, warnings } = await loadConfig('config/example.toml', exampleEnv);
    expect(warnings).toEqual([]);
    expect(config.jobs?.facilitatorTokens).toEqual(['x']);
    expect([...(config.jobs?.jobPolicies.keys() ?? [])]).toEqual(['1/0', '1/1']);
    expect(config.chat).toMatchObject({
      upstreams: [{ name: 'primary', key: 'an-upstream-key' }],
      models: [
        { name: 'small', price: undefined },
        { name: 'vendor/large', targets: [{ upstream: 'primary', model: 'large-2026-10' }] },
      ],
    });
  });

  it('example.toml shows the true defaults in its comments', async () => {
    const text = await readFile('config/example.toml', 'utf8');
    // All comments that set a key, but for the alternative to [job_prices].
    const shown = text.replace(/^# (?!job_prices_file)([a-z_0-9]+ = )/gm, '$1');
    expect(shown.split(/^# [a-z_0-9]+ = /m)).toHaveLength(2);
    const [written, uncommented] = [await parse(text, {}, exampleEnv), await parse(shown, {}, exampleEnv)];
    expect(plain(uncommented.config)).toEqual(plain(written.config));
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
    ]);
    expect([...(config.jobs?.jobPrices ?? [])]).toEqual([
      ['1/0', 1_000_000_000_000_000n],
      ['1/1', 1n],
      ['1/2', 1_000_000_000_000_000n],
      ['1/3', 1_000_000_000_000_000n],
      ['1/4', 1_000_000_000_000_000n],
      ['1/5', 1_000_000_000_000_000n],
      ['2/0', 1_000_000_000_000_000n],
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

/** Maps compare by their entries. */
function plain({ jobs, ...rest }: Config): unknown {
  return {
    ...rest,
    // a function of this text
    lineOf: undefined,
    jobs: {
      ...jobs,
      jobPrices: [...(jobs?.jobPrices ?? [])],
      jobPolicies: [...(jobs?.jobPolicies ?? [])],
      networks: [...(jobs?.networks ?? [])],
    },
  };
}
