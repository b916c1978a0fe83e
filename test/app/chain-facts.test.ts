import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { encodeAbiParameters, parseAbiParameters, toFunctionSelector } from 'viem/utils';
import { expect, onTestFinished, test } from 'vitest';
import { askChains } from '../../src/app/chain-facts.ts';
import { quoted } from '../../src/app/chain-findings.ts';
import { createChainWatch } from '../../src/app/chain-watch.ts';
import type { Config } from '../../src/base/config/config.ts';
import { useChain } from '../support/devnet.ts';
import { configText, networkOf, testConfig } from '../support/gateway.ts';
import { temporaryFolder, tollbook } from '../support/program.ts';
import { logLines } from '../support/log-lines.ts';
import { startRateSource } from '../support/rate-source.ts';
import { type Lie, startRpcProxy } from '../support/rpc-proxy.ts';
import { eventually } from '../support/wait.ts';
import { soonMs } from '../support/time-limits.ts';
import { listening } from '../support/listening.ts';

const chain = useChain();

/** The gateway's configuration of two tokens, with changes of its text. */
async function configured(
  { rpcUrl = chain.rpcUrl, jobs, tables }: { rpcUrl?: string; jobs?: string; tables?: string } = {},
  change: (text: string) => string = (text) => text,
): Promise<Config> {
  const peers = {
    rpcUrl,
    facilitatorUrl: chain.facilitatorUrl,
    token: chain.token,
    secondToken: chain.secondToken,
  };
  // nothing here reaches a database
  return testConfig({
    database: undefined as never,
    chain: peers,
    change,
    ...(jobs && { jobs }),
    ...(tables && { tables }),
  });
}

const messages = async (config: Config) => {
  const { mistakes, unanswered, unchecked, wrongTokens } = await askChains(config);
  const short = (list: typeof mistakes) => list.map(({ at, message }) => `${at.join('.')}: ${message}`);
  return {
    mistakes: short(mistakes),
    unanswered: short(unanswered),
    unchecked: short(unchecked),
    wrong: wrongTokens.size,
  };
};

const nothing = { mistakes: [], unanswered: [], unchecked: [], wrong: 0 };
const policy = (lines: string) => `[job_prices.1]\n0 = "1000000000000000"
[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "restricted_paid"\nauth_mode = "payer_is_caller"\n${lines}`;

/** A peer that answers each request with this body. */
async function startPeer(
  body: string | Buffer | undefined,
  status = 200,
  onRequest = (): void => {},
): Promise<string> {
  const server = http.createServer((_request, response) => {
    onRequest();
    if (body !== undefined) response.writeHead(status, { 'content-type': 'text/html' }).end(body);
  });
  return listening(server);
}

const asked = (name: string) => toFunctionSelector(name);
const dataOf = (params: readonly unknown[]) => (params[0] as { data?: string } | undefined)?.data;
const reverted = { error: { code: 3, message: 'execution reverted' } };

test('a configuration that says what the chains say has no findings', async () => {
  const registry = policy(
    `net_rpc_url = "${chain.rpcUrl}"\nnet_contract = "${chain.registry}"\nnet_network = "eip155:84532"`,
  );
  expect(await messages(await configured({ jobs: registry }))).toEqual(nothing);
});

test('every mistake about a token is reported in one run, with the configured value and the contract’s', async () => {
  const config = await configured({}, (text) =>
    text
      .replace('decimals = 6', 'decimals = 18')
      .replace('symbol = "USDC"', 'symbol = "USDT"')
      .replace('eip712_name = "USD Coin"', 'eip712_name = "USDC"')
      .replace('"Euro Coin"\neip712_version = "2"', '"Euro Coin"\neip712_version = "1"'),
  );
  const found = await messages(config);
  expect(found).toEqual({
    ...nothing,
    wrong: 2,
    mistakes: [
      'accepted_tokens.0.decimals: is 18, and the contract says 6',
      'accepted_tokens.0.symbol: is "USDT", and the contract says "USDC"',
      expect.stringMatching(
        /^accepted_tokens\.0\.eip712_name: "USDC" .*name\(\) is "USD Coin", its version\(\) "2"/,
      ),
      expect.stringMatching(/^accepted_tokens\.1\.eip712_version: .*version\(\) "2"/),
    ],
  });
});

test('an address without a contract, and an RPC of another chain, are mistakes', async () => {
  const nobody = `0x${'11'.repeat(20)}`;
  const swapped = await configured({}, (text) => text.replace(chain.token, nobody));
  expect((await messages(swapped)).mistakes).toEqual([
    `accepted_tokens.0.asset: there is no contract at ${nobody} on eip155:84532`,
  ]);
  const elsewhere = await configured({}, (text) => text.replaceAll('eip155:84532', 'eip155:8453'));
  expect(await messages(elsewhere)).toEqual({
    ...nothing,
    wrong: 2,
    mistakes: ['networks.0.rpc_url: serves the chain eip155:84532, and should serve eip155:8453'],
  });
  const restricted = await configured({
    jobs: policy(`net_rpc_url = "${chain.rpcUrl}"\nnet_contract = "${nobody}"\nnet_network = "eip155:84532"`),
  });
  expect((await messages(restricted)).mistakes).toEqual([
    `job_policies.0.net_contract: there is no contract at ${nobody} on that chain`,
  ]);
  const wrongNet = await configured({
    jobs: policy(
      `net_rpc_url = "${chain.rpcUrl}"\nnet_contract = "${chain.registry}"\nnet_network = "eip155:1"`,
    ),
  });
  expect((await messages(wrongNet)).mistakes).toEqual([
    'job_policies.0.net_rpc_url: serves the chain eip155:84532, and should serve eip155:1',
  ]);
});

test('a contract without DOMAIN_SEPARATOR() is judged by eip712Domain(), and without both it is said that it could not be checked', async () => {
  const domain = (name: string) =>
    encodeAbiParameters(parseAbiParameters('bytes1, string, string, uint256, address, bytes32, uint256[]'), [
      '0x0f',
      name,
      '2',
      84_532n,
      chain.token,
      `0x${'0'.repeat(64)}`,
      [],
    ]);
  const proxy = await startRpcProxy(chain.rpcUrl);
  const lieWith =
    (answer: object): Lie =>
    ({ params }) => {
      if ((params[0] as { to?: string } | undefined)?.to !== chain.token) return undefined;
      if (dataOf(params) === asked('DOMAIN_SEPARATOR()')) return reverted;
      return dataOf(params) === asked('eip712Domain()') ? answer : undefined;
    };
  const config = await configured({ rpcUrl: proxy.url });
  proxy.lie = lieWith({ result: domain('USD Coin') });
  expect(await messages(config)).toEqual(nothing);
  proxy.lie = lieWith({ result: domain('Coin') });
  expect((await messages(config)).mistakes).toEqual([
    'accepted_tokens.0.eip712_name: is "USD Coin", and the EIP-712 domain of the contract has "Coin"',
  ]);
  proxy.lie = lieWith(reverted);
  expect(await messages(config)).toEqual({
    ...nothing,
    unchecked: [
      'accepted_tokens.0.eip712_name: cannot be checked: the contract has no usable DOMAIN_SEPARATOR() or eip712Domain()',
    ],
  });
});

test.each([
  ['a web page', '<html>upstream error</html>', 200],
  ['ten megabytes', Buffer.alloc(10_000_000, 0x61), 200],
  ['an answer of the wrong type', '{"jsonrpc":"2.0","id":1,"result":[1]}', 200],
  ['an error', '', 502],
])('%s of an RPC is silence, never a mistake', async (_, body, status) => {
  const config = await configured({ rpcUrl: await startPeer(body, status) });
  const found = await messages(config);
  expect(found).toMatchObject({ mistakes: [], wrong: 0 });
  expect(found.unanswered).toEqual([
    expect.stringContaining('networks.0.rpc_url: nothing that needs it is checked'),
  ]);
});

test('answers that a contract must not give do not crash the gateway, and end no later than all questions together may', async () => {
  const proxy = await startRpcProxy(chain.rpcUrl);
  const far = `0x${'f'.repeat(64)}`;
  const config = await configured({ rpcUrl: proxy.url });
  for (const result of [
    far,
    `${far}${far.slice(2)}`,
    '0x',
    `0x${'0'.repeat(62)}20${'f'.repeat(64)}`,
    '0xzz',
    7,
  ]) {
    proxy.lie = ({ method }) => (method === 'eth_call' ? { result } : undefined);
    await expect(messages(config)).resolves.toBeDefined();
  }
  let requests = 0;
  const silent = await configured({ rpcUrl: await startPeer(undefined, 200, () => (requests += 1)) });
  const began = performance.now();
  expect((await messages(silent)).unanswered).toHaveLength(1);
  expect(performance.now() - began).toBeLessThan(soonMs(3_000));
  // four questions at once, and none after the time of all of them is over
  expect(requests).toBe(4);
});

test('what a contract says is shown on one line, without control characters', () => {
  expect(quoted('a\nb\u001B[2J\u202E"')).toBe(String.raw`"a\nb\u001b[2J\u202e\""`);
  expect(quoted('x'.repeat(300)).length).toBeLessThan(80);
});

test('a mistake stops the start with its line; what is not answered is asked again, and a token that is wrong then is refused', async () => {
  const proxy = await startRpcProxy(chain.rpcUrl);
  const { lines, logger } = logLines();
  const wrong = await configured({ rpcUrl: proxy.url }, (text) =>
    text.replace('decimals = 6', 'decimals = 18'),
  );
  const watch = createChainWatch(wrong, logger);
  await expect(watch.admit(wrong)).rejects.toThrow(
    /test\.toml:\d+ {2}accepted_tokens\[0\]\.decimals: is 18, and the contract says 6/,
  );
  proxy.lie = () => ({ error: { code: -32_005, message: 'limit exceeded' } });
  (await watch.admit(wrong))();
  expect(lines.map(({ warning }) => warning)).toEqual([
    expect.stringContaining('nothing that needs it is checked yet'),
  ]);
  expect([...watch.wrongTokens()]).toEqual([]);
  const loop = watch.start();
  onTestFinished(() => loop.stop());
  proxy.lie = () => undefined;
  await eventually(() => expect([...watch.wrongTokens()]).toEqual([`eip155:84532/${chain.token}`]));
  expect(watch.status().configuration).toMatchObject({
    status: 'degraded',
    detail: expect.stringContaining('the contract says 6'),
  });
  expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
  const corrected = await configured({ rpcUrl: proxy.url });
  (await watch.admit(corrected))();
  expect([...watch.wrongTokens()]).toEqual([]);
  expect(watch.status()).toEqual({ configuration: { status: 'ok' } });
});

test('`config check --online` exits with 78 and names every mistake with its line, also if the secrets are not there', async () => {
  const file = path.join(temporaryFolder(), 'gateway.toml');
  const peers = { ...chain, rpcUrl: chain.rpcUrl, facilitatorUrl: chain.facilitatorUrl, token: chain.token };
  const text = configText({
    database: undefined as never,
    chain: { ...peers, secondToken: chain.secondToken },
  });
  writeFileSync(file, text.replaceAll('decimals = 6', 'decimals = 8'));
  const check = ['config', 'check', file, '--no-secrets'];
  expect(await tollbook(check)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('not checked: receipt_key\n'),
  });
  const online = await tollbook([...check, '--online']);
  expect(online).toMatchObject({ code: 78, stdout: '' });
  expect(
    online.stderr.split('\n').filter((line) => line.endsWith(' is 8, and the contract says 6')),
  ).toHaveLength(2);
  expect(online.stderr).toMatch(/gateway\.toml:\d+ {2}accepted_tokens\[1\]\.decimals/);
});

const httpSource = ({ url }: { url: string }) =>
  `[[accepted_tokens.rates]]\nkind = "http"\nurl = "${url}"\npointer = "/rate"\ntime_pointer = "/at"\n`;

test('`config check --online` says what each source of a rate answered, how old it is and how far from the others, and one on another chain is a mistake', async () => {
  const seenAt = Math.floor(Date.now() / 1_000) - 40;
  const [near, far, page] = [
    await startRateSource(`{"rate": 3200, "at": ${seenAt}}`),
    await startRateSource(`{"rate": "3520.0", "at": ${seenAt}}`),
    await startRateSource('<html>'),
  ];
  const onChain = `[[accepted_tokens.rates]]\nkind = "chainlink"\ncontract = "${chain.token}"\n`;
  const withRates = async (rates: string) => {
    const file = path.join(temporaryFolder(), 'gateway.toml');
    const peers = {
      ...chain,
      rpcUrl: chain.rpcUrl,
      facilitatorUrl: chain.facilitatorUrl,
      token: chain.token,
    };
    const text = configText({
      database: undefined as never,
      chain: { ...peers, secondToken: chain.secondToken },
    });
    writeFileSync(
      file,
      text.replace('eip712_version = "2"\n', (line) => line + rates),
    );
    return tollbook(['config', 'check', file, '--no-secrets', '--online']);
  };
  const [shown, wrong] = await Promise.all([
    withRates([near, far, page, near, near].map(httpSource).join('')),
    withRates(`${onChain}network = "eip155:1"\n${networkOf('eip155:1', chain.rpcUrl)}`),
  ]);
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout.replaceAll(/\b4\d s old/g, '40 s old').replace(/next \d+ s/, 'next N s')).toContain(
    [
      'USDC on eip155:84532: 3200 tokens for a native unit, for the next N s',
      '  source-1: 3200, 40 s old, +0.0000 % from the median',
      '  source-2: 3520, 40 s old, +10.0000 % from the median (left out: too_far_off)',
      '  source-4: 3200, 40 s old, +0.0000 % from the median',
      '  source-5: 3200, 40 s old, +0.0000 % from the median',
    ].join('\n'),
  );
  expect(shown.stderr).toMatch(
    /gateway\.toml:\d+ {2}accepted_tokens\[0\]\.rates\[2\]: the source source-3 is left out: malformed\n/,
  );
  expect(wrong).toMatchObject({ code: 78, stdout: '' });
  expect(wrong.stderr).toMatch(
    /networks\[1\]\.rpc_url: serves the chain eip155:84532, and should serve eip155:1/,
  );
  expect(wrong.stderr).toMatch(
    /accepted_tokens\[0\]\.rates: no rate \(too_few_sources\): the token would not be/,
  );
});
