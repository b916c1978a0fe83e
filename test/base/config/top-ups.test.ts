import { describe, expect, it } from 'vitest';
import { freeModel, localUpstream, minimal, networks, parse, runner, wrongs } from './support.ts';

const variables = {
  RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
  SECRET: 'a-secret-of-thirty-two-characters',
};
const identity = '[identity]\nsecret = "env:SECRET"\n';
const models = `${localUpstream}\n${freeModel}`;
const both = 'features = ["x402", "chat"]';
const policy = (mode: string, more = '') =>
  `[[job_policies]]\nservice_id = 9\njob_index = 0\ninvocation_mode = "${mode}"\n${more}`;
const topUp = (more = 'currency_per_token = { USDC = "1" }') =>
  `[[top_ups]]\nservice_id = 9\njob_index = 0\n${more}\n`;
const price = (wei: string) => `[job_prices.9]\n0 = "${wei}"\n`;

interface Parts {
  readonly top?: string;
  readonly topUps?: string;
  readonly prices?: string;
  readonly policies?: string;
  readonly runners?: string;
  readonly people?: string;
  readonly rpcs?: string;
}

function config(parts: Parts = {}): string {
  const { top = both, topUps = topUp(), prices = price('1000000000000000'), runners = '' } = parts;
  const { policies = policy('public_paid'), people = identity, rpcs = networks } = parts;
  return `${minimal(top)}\n${rpcs}\n${models}\n${people}\n${topUps}\n${prices}\n${policies}\n${runners}`;
}

/** The same on an unknown network. */
const unproven = (top: string) =>
  config({ top: `${both}\n${top}`, rpcs: '' }).replaceAll('eip155:8453', 'eip155:987654321');

const wrongsOf = (parts: Parts) => wrongs(config(parts), {}, variables);

describe('top-ups', () => {
  it('are jobs at a rate, and need no runner', async () => {
    const text = config({ topUps: topUp('currency_per_token = { USDC = "1.25" }') });
    const { config: read, warnings } = await parse(text, {}, variables);
    expect(read.topUps).toEqual([
      { serviceId: 9, jobIndex: 0, currencyPerToken: { USDC: { numerator: 125n, scale: 2 } } },
    ]);
    expect(warnings.join('\n')).not.toContain('service 9');
  });

  it('may be restricted where the payer is the caller', async () => {
    const restricted = `auth_mode = "payer_is_caller"\nnet_rpc_url = "https://rpc.example"\nnet_contract = "0x${'ab'.repeat(20)}"`;
    const { config: read } = await parse(
      config({ policies: policy('restricted_paid', restricted) }),
      {},
      variables,
    );
    expect(read.topUps).toHaveLength(1);
  });

  const delegated = `auth_mode = "delegated_caller_signature"\nnet_rpc_url = "https://rpc.example"\nnet_contract = "0x${'ab'.repeat(20)}"`;
  const mistakes: [string, Parts, string][] = [
    ['without paid jobs', { top: 'features = ["chat"]' }, 'top_ups: needs the feature x402'],
    ['without accounts', { people: '' }, 'top_ups: needs [identity]'],
    ['without a price', { prices: '' }, 'top_ups[0]: job 9/0 has no price'],
    ['of a disabled job', { policies: policy('disabled') }, 'job 9/0 is disabled'],
    ['of a job that nothing enables', { policies: '' }, 'job 9/0 is disabled'],
    [
      'of callers who are not payers',
      { policies: policy('restricted_paid', delegated) },
      'must belong to its payer',
    ],
    [
      'of a service that a runner serves',
      { runners: runner.replace('[1]', '[1, 9]') },
      'top_ups[0].service_id: runners[0] serves service 9',
    ],
    ['twice', { topUps: topUp() + topUp() }, 'repeats job 9/0 of top_ups[0]'],
    [
      'at the rate of another token',
      { topUps: topUp('currency_per_token = { USDCC = "1" }') },
      'currency_per_token.USDCC: is not an accepted token: those are USDC',
    ],
    ['without rates', { topUps: topUp('') }, 'top_ups[0].currency_per_token: is missing'],
    ['at no rate for a token', { topUps: topUp('currency_per_token = {}') }, 'has no rate for any accepted'],
    ['at a rate of zero', { topUps: topUp('currency_per_token = { USDC = "0" }') }, 'must be above 0'],
    ['at a float', { topUps: topUp('currency_per_token = { USDC = 1.1 }') }, 'a float is not exact'],
    ['at something else', { topUps: topUp('currency_per_token = "1"') }, 'must be a table of rates'],
    [
      'worth nothing',
      { prices: price('1'), topUps: topUp('currency_per_token = { USDC = "0.1" }') },
      'is worth no credit',
    ],
    [
      'worth too much',
      { topUps: topUp('currency_per_token = { USDC = "9999999999" }') },
      'more credit than an account can hold',
    ],
    [
      'with a misspelt key',
      { topUps: topUp('job_indx = 1\ncurrency_per_token = { USDC = "1" }') },
      'did you mean job_index',
    ],
  ];
  it.each(mistakes)('are refused %s, with their line', async (_, parts, message) => {
    const messages = await wrongsOf(parts);
    expect(messages.filter((line) => line.includes(message))).toHaveLength(1);
  });

  it('are refused if no RPC proves a payment, unless confirm is never', async () => {
    expect((await wrongs(unproven(''), {}, variables)).join('\n')).toContain(
      'no RPC proves payments on eip155:987654321',
    );
    expect((await parse(unproven('confirm = "never"'), {}, variables)).config.topUps).toHaveLength(1);
  });
});
