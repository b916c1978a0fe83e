import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { findAccountId } from '../../../src/accounts/store/credit.ts';
import { accountNameOf } from '../../../src/accounts/store/identity.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { ask, paidModel } from '../../support/chat-gateway.ts';
import { useChain } from '../../support/devnet.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { fundedWallet, topUpTables } from '../../support/top-up.ts';
import { injectWallet } from '../../support/wallet.ts';
import { laneOn } from '../../support/credit.ts';
import { goodPassword, type IdentityGateway, linkIn } from '../../support/identity.ts';
import { openTab, startSite, type Tab } from '../../support/site.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const chain = useChain();
const email = 'ada@example.org';

/** As the operator's command does. */
async function grantTo({ database }: IdentityGateway, address: string): Promise<void> {
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from identity."user" where email = $1',
    [address],
  );
  const accountId = await findAccountId(database.pool, accountNameOf(rows[0]?.id ?? ''));
  await grantCredit({ ...database, lane: laneOn(database) }, accountId ?? 0, 5_000_000n);
}

test.skipIf(!hasBrowser).each([true, false])(
  'a person signs up, confirms, makes a key, uses it with the openai client, sees what it used, revokes it, and its next request is refused (with JavaScript: %s)',
  async (javaScriptEnabled) => {
    const gateway = await startSite();
    const { page, check } = await openTab(chromium, gateway, { javaScriptEnabled });
    // axe itself is a script
    const checked = async (): Promise<void> => (javaScriptEnabled ? check() : undefined);
    await page.goto('/');
    await page.getByRole('navigation').getByRole('link', { name: 'Sign up' }).click();
    await page.getByLabel('Name').fill('Ada Lovelace');
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign up' }).click();
    await page.getByRole('heading', { name: 'Look into your mail' }).waitFor();
    const [mail = ''] = await gateway.mails(email);
    await page.goto(linkIn(mail));
    await page.getByText('Your address is confirmed').waitFor();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Welcome, Ada Lovelace' }).waitFor();
    await grantTo(gateway, email);

    await page.getByRole('link', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('My laptop');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    await checked();
    const apiKey = (await page.locator('.secret code').textContent()) ?? '';
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
    const { data, response } = await client.chat.completions.create(ask('Hello', paidModel)).withResponse();
    expect(data.choices[0]?.message.content).not.toBe('');

    await eventually(async () => {
      await page.goto('/usage');
      expect(await page.getByRole('link', { name: 'My laptop' }).count()).toBe(1);
    });
    await page.getByRole('link', { name: paidModel }).waitFor();
    await checked();
    await page.getByLabel('Request id').fill(response.headers.get('x-request-id') ?? '');
    await page.getByRole('button', { name: 'Look it up' }).click();
    await page.getByText('The whole answer was delivered.').waitFor();
    await page.getByText(String(data.usage?.prompt_tokens)).first().waitFor();

    await page.goto('/keys');
    await page.getByRole('link', { name: 'Revoke My laptop' }).click();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('The key was revoked').waitFor();
    await expect(client.chat.completions.create(ask('Hello', paidModel))).rejects.toMatchObject({
      status: 401,
    });
  },
);

/** What a browser without a cache loads for a page, and when it shows something. */
async function costOf({ context }: Tab, gateway: { readonly url: string }, where: string) {
  const fresh = await context.browser()?.newContext({
    baseURL: gateway.url,
    storageState: await context.storageState(),
  });
  if (!fresh) throw new Error('the browser has gone');
  try {
    const page = await fresh.newPage();
    const network = await fresh.newCDPSession(page);
    await network.send('Network.enable');
    const sizes: number[] = [];
    network.on('Network.loadingFinished', ({ encodedDataLength }) => sizes.push(encodedDataLength));
    await page.goto(where, { waitUntil: 'networkidle' });
    // a slow machine paints after the network is idle
    const paintMs: number = await page.evaluate(
      `new Promise((resolve) =>
        new PerformanceObserver((list) => {
          const [paint] = list.getEntriesByName('first-contentful-paint');
          if (paint) resolve(paint.startTime);
        }).observe({ type: 'paint', buffered: true }))`,
    );
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    return { page: where.slice(0, 24), bytes, requests: sizes.length, paintMs: Math.round(paintMs) };
  } finally {
    await fresh.close();
  }
}

test.skipIf(!hasBrowser)(
  'a customer with a wallet signs in, makes a key, buys credit and a job and sees the result with at most 10 clicks, and no page has more than 60 kB in 10 files',
  async () => {
    const site = await startJobsSite(chain, echo, { tables: topUpTables });
    const tab = await openTab(chromium, site);
    const { page, context } = tab;
    let clicks = 0;
    await context.exposeFunction('noteClick', () => void (clicks += 1));
    await context.addInitScript("addEventListener('pointerdown', () => noteClick(), true)");
    const { account } = await fundedWallet(chain);
    await injectWallet(context, { account, rpcUrl: chain.rpcUrl });
    const press = (name: RegExp) => page.getByRole('button', { name }).click();
    const follow = (name: RegExp | string) => page.getByRole('link', { name, exact: true }).first().click();
    const beganMs = performance.now();
    await page.goto('/');
    await follow('Sign up');
    await press(/^Continue with your wallet/);
    await follow('Make a key');
    await page.getByLabel('Name').fill('My laptop');
    await press(/^Make the key/);
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    await follow('Credit');
    await press(/^Pay with your wallet/);
    await page.getByText('10.00 USD were added').waitFor();
    await follow('Jobs');
    await follow('Echo');
    await page.getByLabel('Input').fill('Hello');
    await press(/^Continue to payment|^Check it/);
    await press(/^Pay with the wallet/);
    await page.getByText('The job is done.').waitFor();
    const secs = ((performance.now() - beganMs) / 1_000).toFixed(1);
    const receipt = new URL(page.url()).pathname;
    const costs = [];
    for (const where of ['/', '/try', '/keys', '/usage', '/credit', '/jobs', '/jobs/1/1', receipt, '/docs'])
      costs.push(await costOf(tab, site, where));
    const lines = costs.map(
      (cost) => `${cost.page}: ${cost.bytes} bytes, ${cost.requests} requests, paint ${cost.paintMs} ms`,
    );
    process.stdout.write(`the whole way: ${clicks} clicks, ${secs} s\n${lines.join('\n')}\n`);
    expect(clicks).toBeLessThanOrEqual(10);
    expect(costs.filter(({ bytes, requests }) => bytes > 60_000 || requests > 10)).toEqual([]);
  },
);
