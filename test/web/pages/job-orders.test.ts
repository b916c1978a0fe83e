import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { hasPaid } from '../../../src/web/pages/jobs/paid-calls.ts';
import { listLatestPayments } from '../../../src/ledger/store/payments.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { childEnvironment } from '../../support/child-environment.ts';
import { useChain } from '../../support/devnet.ts';
import { failsBeforeBroadcast, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { type Browser, signInByWallet } from '../../support/identity.ts';
import { echo, hostile, type JobsSite, startJobsSite } from '../../support/jobs-site.ts';
import { openTab, postForm } from '../../support/site.ts';
import { fundedWallet } from '../../support/top-up.ts';
import { startTour } from '../../support/tour.ts';
import { injectWallet } from '../../support/wallet.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const chain = useChain();
const run = promisify(execFile);
const root = path.resolve(import.meta.dirname, '../../..');

const good = { 'in/text': 'Good morning', 'in/to': '"de"', 'in/copies': '2', 'in/address/city': 'Bonn' };

const send = (browser: Browser, job: string, fields: Readonly<Record<string, string>>) =>
  postForm(browser, `/jobs/${job}/order`, fields);

function textOf(markup: string): string {
  return markup.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
}

/** Whether the browser may keep a form. */
async function kept(browser: Browser): Promise<string | null> {
  return (await browser.get('/jobs/1/0')).headers.get('cache-control');
}

/** The programs that a page shows. */
function programsOn(page: string): string[] {
  const blocks = [...page.matchAll(/<pre tabindex="0"><code>([^]*?)<\/code><\/pre>/g)];
  return blocks.map(([, markup = '']) => textOf(markup));
}

const mistake = (name: string, text: string): RegExp =>
  new RegExp(`id="in/${name}-error">\\s*<bdi[^>]*>${text}`);

async function order(site: JobsSite, job: string, fields: Readonly<Record<string, string>>): Promise<string> {
  const { status, text } = await send(site.browser(), job, fields);
  expect([status, text.includes('Nothing is charged before your wallet signs')]).toEqual([200, true]);
  return text;
}

test('a form without JavaScript says at each control what is wrong, and keeps all that was typed', async () => {
  const site = await startJobsSite(chain, echo);
  const typed = {
    ...good,
    'in/text': `x</textarea>${hostile}`,
    'in/copies': 'two',
    'in/warmth': '7',
    'in/tags': 'a\r\nb\r\nc\r\nd',
    'in/styles': JSON.stringify(hostile),
    'in/more': '{"a"',
  };
  const first = await send(site.browser(), '1/0', typed);
  expect(first.status).toBe(422);
  expect(first.text).toMatch(mistake('copies', 'A whole number'));
  expect(first.text).toMatch(mistake('more', 'This is not JSON'));
  for (const value of ['two', '7', '{"a"', 'a\nb\nc\nd', `x</textarea>${hostile}`])
    expect(textOf(first.text).replaceAll('\r\n', '\n')).toContain(value);
  expect(first.text).not.toContain('<img src=x');
  expect(first.text).toMatch(/<option value="&#34;de&#34;"\s+selected/);
  expect(first.text).toMatch(/value="&#34;\u202e?[^>]*\schecked/);
  // what its own control takes is checked by the schema then
  const second = await send(site.browser(), '1/0', { ...typed, 'in/copies': '2', 'in/more': '{"a":1}' });
  expect(second.text).toMatch(mistake('warmth', 'It must be &#60;= 1'));
  expect(second.text).toMatch(mistake('tags', 'It must not have more than 3 items'));
  expect(site.runner.deliveries).toEqual([]);
});

test('an order can be changed, and written as JSON, without losing what was typed', async () => {
  const site = await startJobsSite(chain, echo);
  await order(site, '1/0', good);
  const changed = await send(site.browser(), '1/0', { ...good, as: 'change' });
  expect(changed.text).toContain('>\nGood morning</textarea');
  expect(changed.text).toMatch(/name="in\/address\/city"\s+type="text"\s+value="Bonn"/);
  const asJson = await send(site.browser(), '1/0', { ...good, as: 'json' });
  const [, area = ''] = /<textarea[^>]*>\n([^]*?)<\/textarea/.exec(asJson.text) ?? [];
  const body = textOf(area);
  expect(JSON.parse(body)).toEqual({ text: 'Good morning', to: 'de', copies: 2, address: { city: 'Bonn' } });
  const page = await order(site, '1/0', { mode: 'whole', body });
  expect(textOf(page)).toContain(JSON.stringify(body));
  const wrong = await send(site.browser(), '1/0', { mode: 'whole', body: body.replace('"de"', '"xx"') });
  expect([wrong.status, wrong.text.includes('/to must be equal to one of the allowed values')]).toEqual([
    422,
    true,
  ]);
  expect(wrong.text).toContain('&#34;xx&#34;');
});

test('the programs of an order send its very input, one without paying, one with no more than its price', async () => {
  const site = await startJobsSite(chain, echo);
  const { key, payer } = await fundedWallet(chain);
  const body = `it's "quoted" \\ $HOME \`x\` \u2028 ${hostile}\n${'é'.repeat(5)}`;
  const [curl = '', script = ''] = programsOn(await order(site, '1/1', { body }));
  const { stdout: offer } = await run('bash', ['-c', curl]);
  expect(offer).toMatch(/^HTTP\/1\.1 402 /);
  expect(await chain.balance(payer)).toBe(100_000_000n);
  expect(script).toContain(`maxAmountPerPayment: '1'`);
  const env = { ...childEnvironment(), WALLET_KEY: key };
  const paid = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: root, env });
  expect(paid.stdout).toMatch(/^202 http\S+\/x402\/receipts\/0x[0-9a-f]{64} [\w-]{43}\n$/);
  expect(await chain.balance(payer)).toBe(99_999_999n);
  await eventually(() => expect(site.runner.deliveries.map((one) => one.body.toString())).toEqual([body]));
});

test('the program of a job for callers who sign buys it for a permitted caller, with any input', async () => {
  const site = await startJobsSite(chain, echo);
  const { key } = await fundedWallet(chain);
  const body = 'any bytes \u00ff';
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-input-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = path.join(dir, 'input');
  writeFileSync(file, body);
  const [curl = '', script = ''] = programsOn((await site.browser().get('/jobs/1/4')).text);
  const { stdout: offer } = await run('bash', ['-c', curl], { cwd: dir });
  expect(offer).toMatch(/^HTTP\/1\.1 402 /);
  const program = script.replace("'input'", JSON.stringify(file));
  const callers = [devnetKeys.refusedCaller, devnetKeys.permittedCaller];
  const statuses = [];
  for (const caller of callers) {
    const env = { ...childEnvironment(), WALLET_KEY: key, CALLER_KEY: caller };
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
      cwd: root,
      env,
    });
    statuses.push(stdout.split(' ')[0]);
  }
  expect(statuses).toEqual(['403', '202']);
  await eventually(() => expect(site.runner.deliveries.map((one) => one.body.toString())).toEqual([body]));
});

test('an order with a long input has programs that read it from a file, and a page of under 100 kB', async () => {
  const site = await startJobsSite(chain, echo);
  const page = await order(site, '1/1', { body: '<"&\u202e'.repeat(1_500) });
  expect(Buffer.byteLength(page)).toBeLessThan(100_000);
  expect(programsOn(page)[0]).toContain('--data-binary @input');
});

test('a form is checked however old it is, only for its own origin, up to a length and a number of requests', async () => {
  const site = await startJobsSite(chain, echo, {
    tables: '[limits]\nrequests_per_minute = 3',
  });
  const from = (address: string): Browser => site.browser(address);
  expect((await send(from('198.51.100.1'), '1/1', { body: 'x', form: 'of another year' })).status).toBe(200);
  const elsewhere = await postForm(
    from('198.51.100.2'),
    '/jobs/1/1/order',
    { body: 'x' },
    { origin: 'https://other.example' },
  );
  expect(elsewhere.status).toBe(403);
  expect((await send(from('198.51.100.3'), '1/1', { body: 'x'.repeat(200_000) })).status).toBe(413);
  const busy = from('198.51.100.4');
  for (let count = 0; count < 3; count++) expect((await send(busy, '1/1', { body: 'x' })).status).toBe(200);
  const late = await send(busy, '1/1', { body: 'x' });
  expect([late.status, late.text.includes('then go back')]).toEqual([429, true]);
  expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
});

test.each(['json', 'change'])(
  'a form whose button is %s counts by its bytes as any other, before anything that was typed is read',
  async (as) => {
    const site = await startJobsSite(chain, echo, {
      tables: '[limits]\nrequests_per_minute = 4',
    });
    const client = site.browser('198.51.100.9');
    const typed = { body: '"\\'.repeat(5_000), mode: 'whole', as };
    const statuses = [];
    for (let count = 0; count < 3; count++) statuses.push((await send(client, '1/6', typed)).status);
    expect(statuses).toEqual([200, 200, 429]);
  },
);

const fields = (count: number): string => Array.from({ length: count }, () => 'a=').join('&');

test('a form or a query of more than a thousand fields is malformed', async () => {
  const site = await startJobsSite(chain, echo);
  const client = site.browser('198.51.100.10');
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  expect((await client.post('/jobs/1/1/order', fields(1_000), type)).status).toBe(200);
  expect((await client.post('/jobs/1/1/order', fields(1_001), type)).status).toBe(400);
  expect((await client.get(`/jobs/1/1?${fields(1_001)}`)).status).toBe(400);
});

test('a job that is not sold has no page, and the address of an order shows its form', async () => {
  const site = await startJobsSite(chain, echo);
  for (const job of ['9/9', '1/7', '01/0', 'x/0', '1/99999999999']) {
    expect((await site.browser().get(`/jobs/${job}`)).status).toBe(404);
    expect((await send(site.browser(), job, {})).status).toBe(404);
  }
  const { status, headers } = await site.browser().get('/jobs/1/0/order');
  expect([status, headers.get('location')]).toEqual([303, '/jobs/1/0']);
  expect((await send(site.browser(), '1/5', { body: 'x' })).status).toBe(415);
});

test.skipIf(!hasBrowser)('a user sees the calls that the wallet has paid for, the newest first', async () => {
  const site = await startJobsSite(chain, echo);
  const { key, account, payer } = await fundedWallet(chain);
  const digests: string[] = [];
  for (const jobIndex of [1, 1]) {
    const paid = await payForOneJob({
      gatewayUrl: site.url,
      privateKey: key,
      serviceId: 1,
      jobIndex,
      body: '"x"',
    });
    digests.unshift(paid.body.quote_digest);
  }
  const latest = async (beforeSeq: number | undefined, limit: number) =>
    (await listLatestPayments(site.database.pool, { payer }, beforeSeq, limit)).rows;
  await eventually(async () =>
    expect((await latest(undefined, 9)).map((row) => [row.quote_digest, row.state])).toEqual(
      digests.map((digest) => [digest, 'completed']),
    ),
  );
  const [newest] = await latest(undefined, 1);
  expect((await latest(newest?.seq, 9)).map((row) => row.quote_digest)).toEqual(digests.slice(1));
  const tab = await openTab(chromium, site);
  const person = site.browser();
  await signInByWallet(person, account);
  const cookies = [...person.cookies].map(([name, value]) => ({ name, value, url: site.url }));
  await tab.context.addCookies(cookies);
  expect([await kept(site.browser()), await kept(person)]).toEqual(['private, no-cache', 'no-store']);
  const tour = startTour(tab);
  await tour.open('/jobs/receipts', 'user-jobs-receipts');
  expect(await tab.page.locator('tbody tr').count()).toBe(2);
  await tab.page.locator(`a[href$="${digests[0]}"]`).click();
  await tab.page.getByRole('heading', { name: 'Result' }).waitFor();
  await tour.look('user-jobs-receipt');
  await tour.open('/jobs', 'user-jobs');
  const before = await latest(undefined, 1);
  await tab.page.goto(`/jobs/receipts?wallet=${payer}&before=${before[0]?.seq}`);
  expect(await tab.page.locator('tbody tr').count()).toBe(1);
});

test.skipIf(!hasBrowser)(
  'an order in a browser without a wallet shows its price and the programs',
  async () => {
    const site = await startJobsSite(chain, echo);
    const tab = await openTab(chromium, site);
    const { page } = tab;
    await tab.open('/jobs/1/1');
    await page.getByLabel('Input').fill('no wallet');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByText('This browser has no wallet').waitFor();
    expect(await page.locator('.pay [data-without-wallet] data').allTextContents()).toEqual([
      '0.000001 USDC',
      '0.000001 EURC',
    ]);
    await startTour(tab).look('jobs-no-wallet');
  },
);

test('a contract wallet is the one that paid only on its own chain', () => {
  const [address, network] = [`0x${'a1'.repeat(20)}`, 'eip155:84532'] as const;
  const payment = {
    network,
    payer: address,
    asset: address,
    symbol: 'USDC',
    decimals: 6,
    amount: '1',
    transaction: `0x${'1'.repeat(64)}`,
  };
  expect(hasPaid([{ address, onlyOn: undefined }], { payment })).toBe(true);
  expect(hasPaid([{ address, onlyOn: network }], { payment })).toBe(true);
  expect(hasPaid([{ address, onlyOn: 'eip155:1' }], { payment })).toBe(false);
  expect(hasPaid([{ address: `0x${'b2'.repeat(20)}`, onlyOn: undefined }], { payment })).toBe(false);
  expect(hasPaid([{ address, onlyOn: undefined }], { payment: undefined })).toBe(false);
});

test.skipIf(!hasBrowser)(
  'an order whose payment failed on its way to the chain is paid by another signature then',
  async () => {
    const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
    const site = await startJobsSite(chain, echo, { facilitatorUrl: proxy.url });
    const { page, context } = await openTab(chromium, site);
    const { account, payer } = await fundedWallet(chain);
    await injectWallet(context, { account, rpcUrl: chain.rpcUrl });
    await page.goto('/jobs/1/1');
    await page.getByLabel('Input').fill('again');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    const pay = page.getByRole('button', { name: 'Pay with the wallet' });
    proxy.faults.settle = failsBeforeBroadcast;
    await pay.click();
    await page.getByText('Nothing was charged. Send it some, then try again.').waitFor();
    expect(await chain.balance(payer)).toBe(100_000_000n);
    proxy.faults.settle = 'pass';
    await pay.click();
    await page.getByText('The job is done.').waitFor();
    expect(await chain.balance(payer)).toBe(99_999_999n);
    expect(site.runner.deliveries).toHaveLength(1);
  },
);
