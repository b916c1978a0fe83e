import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { recoverMessageAddress, recoverTypedDataAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { devnetAddress } from '../../src/devnet/accounts.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { createDevelopmentWallet } from '../../src/devnet/wallet/wallet.ts';
import { hasBrowser, useBrowser } from '../support/browser.ts';
import { useChain } from '../support/devnet.ts';
import type { IdentityOptions } from '../support/identity.ts';
import { authorizationTypes } from '../support/payer.ts';
import { openTab, startSite, type Tab } from '../support/site.ts';
import { root } from '../support/pages.ts';

const chromium = useBrowser();
const chain = useChain();
const chainId = 84_532;
const address = devnetAddress('payer');
const { SCREENSHOTS: pictures } = processEnvironment();

async function startWithWallet(options: IdentityOptions = {}) {
  const { rpcUrl } = chain;
  const pageAddition = await createDevelopmentWallet({ rpcUrl, chainId });
  return startSite({ pageAddition, identity: `siwe_chain_id = ${chainId}`, ...options });
}

const authorization = (id: number) => ({
  types: {
    EIP712Domain: [
      { name: 'name', type: 'string' },
      { name: 'version', type: 'string' },
      { name: 'chainId', type: 'uint256' },
      { name: 'verifyingContract', type: 'address' },
    ],
    ...authorizationTypes,
  },
  primaryType: 'TransferWithAuthorization',
  domain: { name: 'USD Coin', version: '2', chainId: id, verifyingContract: chain.token },
  message: {
    from: address,
    to: devnetAddress('payTo'),
    value: '10000000',
    validAfter: '0',
    validBefore: '4102444800',
    nonce: `0x${'7'.repeat(64)}`,
  },
});

/** Asks the page's provider; what it rejects with is returned as `{ code, message }`. */
function ask(page: Page, method: string, params: readonly unknown[] = []): Promise<unknown> {
  const call = JSON.stringify({ method, params });
  return page.evaluate(`ethereum.request(${call}).catch(({ code, message }) => ({ code, message }))`);
}

async function connect({ page }: Tab): Promise<void> {
  const asked = ask(page, 'eth_requestAccounts');
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  expect(await asked).toEqual([address]);
}

describe.skipIf(!hasBrowser)('the development wallet', () => {
  test('signs texts and typed data as the devnet’s payer, and reads the chain', async () => {
    const gateway = await startWithWallet();
    const tab = await openTab(chromium, gateway);
    const { page } = tab;
    await tab.open('/sign-in');
    expect(await ask(page, 'eth_accounts')).toEqual([]);
    expect(await ask(page, 'personal_sign', ['0x6869', address])).toMatchObject({ code: 4100 });
    await connect(tab);
    expect(await ask(page, 'eth_chainId')).toBe(`0x${chainId.toString(16)}`);
    const text = ask(page, 'personal_sign', ['hi, <b>you</b>', address]);
    await page.getByText('hi, <b>you</b>').waitFor();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    const signature = (await text) as `0x${string}`;
    const signer = await recoverMessageAddress({ message: 'hi, <b>you</b>', signature });
    expect(signer.toLowerCase()).toBe(address);
    const data = authorization(chainId);
    const typed = ask(page, 'eth_signTypedData_v4', [address, JSON.stringify(data)]);
    await page.getByText('"value": "10000000"').waitFor();
    await tab.check();
    if (pictures) await page.screenshot({ path: path.join(pictures, 'wallet-typed.png') });
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    const ofData = (await typed) as `0x${string}`;
    // oxlint-disable-next-line typescript/no-explicit-any -- the types of the library want literals
    const payer = await recoverTypedDataAddress({ ...(data as any), signature: ofData });
    expect(payer.toLowerCase()).toBe(address);
    expect(await ask(page, 'eth_getBalance', [address, 'latest'])).toMatch(/^0x[1-9a-f]/);
  });

  test('refuses with the codes of EIP-1193 what the person, the account or the network does not permit', async () => {
    const gateway = await startWithWallet();
    const tab = await openTab(chromium, gateway);
    const { page } = tab;
    await tab.open('/sign-in');
    const refused = ask(page, 'eth_requestAccounts');
    await page.getByRole('dialog').waitFor();
    expect(await ask(page, 'eth_requestAccounts')).toMatchObject({ code: -32_002 });
    await page.keyboard.press('Escape');
    expect(await refused).toMatchObject({ code: 4001 });
    await connect(tab);
    const typed = (id: number) =>
      ask(page, 'eth_signTypedData_v4', [address, JSON.stringify(authorization(id))]);
    const other = typed(1);
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    expect(await other).toMatchObject({ code: -32_602, message: expect.stringContaining('chain 1') });
    expect(await ask(page, 'personal_sign', ['x', devnetAddress('payTo')])).toMatchObject({ code: 4100 });
    expect(await ask(page, 'eth_sendTransaction', [{}])).toMatchObject({ code: 4200 });
    expect(await ask(page, 'wallet_switchEthereumChain', [{ chainId: '0x2' }])).toMatchObject({ code: 4902 });
    const moved = ask(page, 'wallet_switchEthereumChain', [{ chainId: '0x1' }]);
    await page.getByRole('button', { name: 'Switch' }).click();
    expect(await moved).toBe(null);
    await page.reload();
    expect(await ask(page, 'eth_chainId')).toBe('0x1');
    expect(await typed(chainId)).toMatchObject({ code: 4901 });
  });
});

test('the route that signs answers only pages of its own gateway', async () => {
  const gateway = await startWithWallet();
  const call = { method: 'personal_sign', params: ['0x6869', address] };
  const post = (headers: Record<string, string>, body: unknown = call) =>
    gateway.browser().post('/devnet/wallet', body, headers);
  const { origin } = new URL(gateway.url);
  expect((await post({ origin })).json).toMatchObject({ result: expect.stringMatching(/^0x[0-9a-f]{130}$/) });
  for (const headers of [
    { origin: 'https://other.example' },
    { origin: 'null' },
    { origin: origin.replace('127.0.0.1', 'localhost') },
    { origin, 'sec-fetch-site': 'cross-site' },
  ] as Record<string, string>[]) {
    const { status, json } = await post(headers);
    expect([status, json.code]).toEqual([403, 'wrong_origin']);
  }
  const plain = await fetch(`${gateway.url}/devnet/wallet`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  });
  expect(plain.status).toBe(403);
  expect((await post({ origin }, 'personal_sign')).status).toBe(400);
  expect((await post({ origin }, [])).json).toMatchObject({ error: { code: -32_602 } });
});

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

/** As a page would ask whose address, behind a proxy, is the gateway's public one. */
async function callAt(host: string, port: number): Promise<number | undefined> {
  const request = http.request({
    host,
    port,
    path: '/devnet/wallet',
    method: 'POST',
    headers: {
      host: 'books.example',
      origin: 'https://books.example',
      'content-type': 'application/json',
      'x-forwarded-for': '127.0.0.1',
    },
  });
  request.end(JSON.stringify({ method: 'personal_sign', params: ['0x6869', address] }));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  return response.statusCode;
}

test.skipIf(outside === undefined)('the route that signs answers no other machine', async () => {
  const port = await freePort();
  await startWithWallet({ bind: `0.0.0.0:${port}`, top: 'public_url = "https://books.example"' });
  expect(await callAt('127.0.0.1', port)).toBe(200);
  expect(await callAt(outside ?? '', port)).toBe(403);
});

test('a gateway that the devnet did not start has no development wallet', async () => {
  const gateway = await startSite();
  const browser = gateway.browser();
  for (const where of ['/', '/sign-in', '/sign-up']) {
    const { status, text } = await browser.get(where);
    // one of the models has the devnet in its name
    expect([status, /devnet(?!-small)|development wallet/i.test(text)]).toEqual([200, false]);
  }
  for (const where of ['/devnet/wallet.js', '/devnet/wallet.css', '/devnet/wallet'])
    expect([where, (await browser.get(where)).status]).toEqual([where, 404]);
  expect((await browser.post('/devnet/wallet', { method: 'personal_sign', params: [] })).status).toBe(404);
});

/** Every file that a file loads, in whatever way it imports. */
function loadedBy(file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, imported = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g))
    loadedBy(path.resolve(path.dirname(file), imported), found);
  return found;
}

test.each(['src/app/cli/commands/serve.ts', 'src/main.ts'])(
  '%s can load nothing of the devnet but its database, above all not the development wallet',
  (entry) => {
    const files = [...loadedBy(path.join(root, entry))].map((file) => path.relative(root, file));
    expect(files).toContain('src/web/pages/visit.ts');
    const ofDatabase = [...loadedBy(path.join(root, 'src/devnet/postgres.ts'))];
    const database = new Set(ofDatabase.map((file) => path.relative(root, file)));
    expect([...database].filter((file) => /wallet|accounts|chain|facilitator/.test(file))).toEqual([]);
    // `serve --embedded` runs the devnet's database, and nothing else of it
    expect(files.filter((file) => file.startsWith('src/devnet/') && !database.has(file))).toEqual([]);
  },
);
