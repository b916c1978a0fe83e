import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { loadConfig } from '../../../src/base/config/load.ts';
import { payForUrl } from '../../../src/devnet/client.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { json, startApi } from '../../jobs/http/routes/support.ts';
import { endProcessesAround } from '../../support/processes.ts';
import { destroy, spawnTollbook, temporaryFolder, tollbook } from '../../support/program.ts';

test('one command puts a price on an API, pays for a request by itself, and writes a configuration that is valid by itself', async () => {
  const api = await startApi(json);
  const dir = temporaryFolder();
  const port = String(await freePort());
  const options = ['--port', port, '--gateway-port', String(await freePort()), '--dir', dir];
  const prices = ['--price', '0.01 USD', '--route', 'GET /weather/*=0.02 USD'];
  const program = spawnTollbook(['proxy', '--to', api.url, ...prices, '--devnet', ...options]);
  onTestFinished(async () => {
    await destroy(program);
    await endProcessesAround(dir);
  });
  await program.says(/the upstream answered 200, paid in transaction 0x/);
  const paid = await payForUrl(`http://127.0.0.1:${port}/news?day=1`, devnetKeys.payer);
  expect(paid).toMatchObject({ status: 200, body: '{"url":"/news?day=1","sunny":true}' });
  expect(paid.payment?.transaction).toMatch(/^0x/);
  const file = path.join(dir, 'proxy.toml');
  expect(readFileSync(file, 'utf8').split('\n').length).toBeLessThanOrEqual(40);
  const { config } = await loadConfig(file, {});
  expect([...(config.jobs?.routes?.all.values() ?? [])].map(({ path: pattern }) => pattern)).toEqual([
    '/weather/*',
    '/*',
  ]);
});

test.each([
  ['no API', [], /name the API/],
  ['no price', ['--to', 'http://localhost:3000'], /say what a request costs/],
  ['no payee', ['--to', 'http://localhost:3000', '--price', '0.01 USD'], /name your address/],
  [
    'a facilitator that wants signed requests',
    [
      '--to',
      'http://localhost:3000',
      '--price',
      '1 USD',
      '--network',
      'base',
      '--facilitator',
      'cdp',
      '--pay-to',
      `0x${'1'.repeat(40)}`,
    ],
    /wants signed requests: `tollbook init`/,
  ],
  [
    'a route that has no price',
    ['--to', 'http://localhost:3000', '--price', '1 USD', '--devnet', '--route', 'GET /x'],
    /--route is METHOD PATH=PRICE/,
  ],
  [
    'a payee beside a devnet',
    ['--to', 'http://localhost:3000', '--price', '1 USD', '--devnet', '--pay-to', `0x${'1'.repeat(40)}`],
    /leave out --pay-to/,
  ],
])('%s is refused before anything is started', async (_what, args, said) => {
  const { code, stderr } = await tollbook(['proxy', ...args]);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
});
