import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { Address } from '../../../src/base/values/primitives.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { useChain } from '../../support/devnet.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { echo, hostile, type JobsSite, startJobsSite } from '../../support/jobs-site.ts';
import type { Reaction } from '../../support/runner.ts';
import { signInByWallet } from '../../support/identity.ts';
import { openTab, sendForm, startSite, type Tab } from '../../support/site.ts';
import { type FundedWallet, fundedWallet } from '../../support/top-up.ts';
import { registeredPages, startTour, type Tour } from '../../support/tour.ts';
import { injectWallet, type TestWallet } from '../../support/wallet.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const chain = useChain();
const startAtoms = 100_000_000n;

interface Buyer extends Tab {
  readonly wallet: TestWallet;
  readonly tour: Tour;
  readonly owner: FundedWallet;
  /** What the wallet has paid, in atoms of USDC. */
  paid(): Promise<bigint>;
}

async function openBuyer(site: JobsSite): Promise<Buyer> {
  const tab = await openTab(chromium, site);
  const owner = await fundedWallet(chain);
  const wallet = await injectWallet(tab.context, { account: owner.account, rpcUrl: chain.rpcUrl });
  const paid = async () => startAtoms - (await chain.balance(owner.payer));
  return { ...tab, tour: startTour(tab), wallet, owner, paid };
}

/** Types an input for the job that gives it back, and has it checked. */
async function order(page: Page, text: string): Promise<void> {
  await page.goto('/jobs/1/1');
  await page.getByLabel('Input').fill(text);
  await check(page);
}

async function check(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Continue to payment' }).click();
  await page.getByRole('heading', { name: /^Pay for / }).waitFor();
}

const payButton = (page: Page) => page.getByRole('button', { name: 'Pay with the wallet' });
const hasPaid = (page: Page): boolean => page.url().includes('/jobs/receipts/0x');
const isDone = (page: Page) => page.getByText('The job is done.').waitFor();
const isBought = (page: Page) => page.getByText('This was paid already, from this browser').waitFor();

async function onlyOneCall(site: JobsSite, { paid }: Buyer): Promise<void> {
  expect(site.runner.deliveries).toHaveLength(1);
  expect(await paid()).toBe(1n);
}

describe.skipIf(!hasBrowser)('a visitor with a wallet', () => {
  test('finds a job, fills in its form, pays, follows the call and sees its result, its proof and its transaction', async () => {
    let release: (() => void) | undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const site = await startJobsSite(chain, async (delivery) => {
      await released;
      return echo(delivery);
    });
    const buyer = await openBuyer(site);
    const { page, tour } = buyer;
    for (const where of ['1/1', '1/2', '1/3', '1/4', '1/5', '1/6', 'receipts']) {
      await tour.open(`/jobs/${where}`, `jobs-${where.replace('/', '-')}`);
    }
    await tour.open('/', 'jobs-home');
    for (const offer of ['Translate a text', 'devnet-small']) {
      const item = page.locator('.offers li').filter({ has: page.getByRole('link', { name: offer }) });
      await item
        .getByText(/3\.264|free/)
        .first()
        .waitFor();
      await item.getByText(/^curl /).waitFor();
    }
    await tour.open('/jobs', 'jobs');
    await page.getByRole('link', { name: 'Translate a text' }).click();
    await tour.look('jobs-form');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByText('Nothing was charged').waitFor();
    await tour.look('jobs-refused');
    await page.getByLabel('Text').fill('Good morning,\nAda');
    await page.getByLabel('Language').selectOption({ label: 'de' });
    await page.getByLabel('City').fill('Bonn');
    await page.getByLabel('Tags').fill('a\nb');
    await check(page);
    await tour.look('jobs-order');
    await payButton(page).click();
    await page.getByRole('heading', { name: 'Paid, and waiting' }).waitFor();
    await page.getByText('the job waits for its turn').waitFor();
    await tour.look('jobs-waiting');
    release?.();
    // the page looks again by itself
    await isDone(page);
    await page.getByText('"Good morning,\\nAda"').waitFor();
    // what opens the receipt is in a cookie, which no script reads
    expect(await page.evaluate('JSON.stringify(localStorage) + document.cookie')).not.toMatch(
      /token|receipts=/,
    );
    await eventually(async () => {
      await page.reload();
      expect(await page.getByText('Tree size').count()).toBe(1);
    });
    await tour.open(new URL(page.url()).pathname, 'jobs-receipt');
    const ofJobs = (await registeredPages('GET', { hasJobs: true })).filter((where) =>
      where.startsWith('/jobs'),
    );
    // one leads to the form, the other one is a file
    expect(tour.unseen(ofJobs)).toEqual(['/jobs/receipts/:digest/result', '/jobs/:service/:index/order']);
    expect(await buyer.paid()).toBe(3_264_000n);
    expect(site.runner.deliveries.map(({ body }) => JSON.parse(body.toString()) as unknown)).toEqual([
      { text: 'Good morning,\nAda', to: 'de', copies: 1, tags: ['a', 'b'], address: { city: 'Bonn' } },
    ]);
    const json = (await site.get(`/x402/receipts/${new URL(page.url()).pathname.split('/').at(-1)}`)).json;
    await page.locator(`code[title="${json.payment.transaction}"]`).waitFor();
    const [first] = json.log_proof.proofs;
    await page.locator(`code[title="${first.leaf_hash}"]`).waitFor();
    await buyer.open('/jobs/receipts');
    await page.getByText('Opened in this browser').waitFor();
    await tour.look('jobs-receipts-opened');
  });

  test('pays once by a double click, and in two tabs simultaneously', async () => {
    const site = await startJobsSite(chain, echo);
    const buyer = await openBuyer(site);
    const { page, context, wallet } = buyer;
    await page.goto('/jobs/1/1');
    await page.getByLabel('Input').fill('once');
    const formId = await page.locator('[name=order]').inputValue();
    await check(page);
    const other = await context.newPage();
    await other.goto('/jobs/1/1');
    await other.getByLabel('Input').fill('once');
    // as a tab that was duplicated
    await other.evaluate(`document.querySelector('[name=order]').value = '${formId}'`);
    await check(other);
    // both buttons are found first: the tab that pays earlier hides the other one's before a mouse could reach it
    const buttons = await Promise.all([page, other].map((tab) => payButton(tab).elementHandle()));
    await Promise.all([...buttons, ...buttons].map((button) => button?.dispatchEvent('click')));
    await eventually(() => expect([page, other].some(hasPaid)).toBe(true));
    const [paying, waiting] = hasPaid(page) ? [page, other] : [other, page];
    await isDone(paying);
    await isBought(waiting);
    await onlyOneCall(site, buyer);
    expect(wallet.asked.filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(1);
    await waiting.getByRole('button', { name: 'See its receipt' }).click();
    await isDone(waiting);
  });

  test('who goes back after the payment finds what was typed, and does not pay for it again', async () => {
    const site = await startJobsSite(chain, echo);
    const buyer = await openBuyer(site);
    const { page } = buyer;
    await order(page, 'once');
    await payButton(page).click();
    await isDone(page);
    await page.goBack();
    expect(await page.getByLabel('Input').inputValue()).toBe('once');
    await check(page);
    await isBought(page);
    expect(await payButton(page).isVisible()).toBe(false);
    await onlyOneCall(site, buyer);
    await page.getByRole('link', { name: 'Buy another call' }).click();
    expect(await page.getByLabel('Input').inputValue()).toBe('');
  });

  test('whom the permission contract does not permit is not charged, and the page says who is', async () => {
    const site = await startJobsSite(chain, echo);
    const buyer = await openBuyer(site);
    const { page } = buyer;
    await page.goto('/jobs/1/3');
    await page.getByText('Only wallets that the operator permits can buy it').waitFor();
    await check(page);
    await payButton(page).click();
    await page.getByText('not permitted').last().waitFor();
    expect(await buyer.paid()).toBe(0n);
    await page.goto('/jobs/1/4');
    await page.getByText('each signs its request in addition to the payment').waitFor();
    await page.getByText('how a program pays').waitFor();
    expect(await payButton(page).count()).toBe(0);
    await page.getByText('A page cannot do that: use a program.').waitFor();
  });
});

/** Runs nothing, turns nothing around. */
const result = (body: string | Buffer, type = 'text/html'): Reaction => ({
  status: 200,
  headers: { 'content-type': type },
  body,
});

describe.skipIf(!hasBrowser)('a result', () => {
  test.each([
    [
      'HTML',
      result(`<script>alert(1)</script>${hostile}`),
      String.raw`<script>alert(1)</script>\u{202e}<img`,
    ],
    [
      'JSON',
      result(JSON.stringify({ a: hostile, n: 1 }), 'application/json'),
      String.raw`"a": "\u{202e}<img`,
    ],
    ['JSON that is none', result('{"a":', 'application/json'), '{"a":'],
    ['bytes', result(Buffer.from([0xff, 0xd8, 0, 1]), 'image/svg+xml'), 'which are not text'],
    ['nothing', result(''), 'It is empty'],
  ])('of %s is shown unchanged, and the browser reads it as text only', async (_, reaction, shown) => {
    const site = await startJobsSite(chain, () => reaction);
    const { digest, token } = await buy(site);
    const tab = await openTab(chromium, site);
    await openByToken(tab, digest, token);
    await isDone(tab.page);
    await tab.page.getByText(shown).waitFor();
    await tab.check();
    expect(await tab.page.locator('main img, main script').count()).toBe(0);
  });

  test('of a megabyte is shown as far as a page has room, and kept whole as a file that no browser shows', async () => {
    const whole = Buffer.from(`[${'"\u00e9\u202e<b>",'.repeat(70_000)}1]`);
    const site = await startJobsSite(chain, () => result(whole, 'application/json'));
    const { digest, token } = await buy(site);
    const tab = await openTab(chromium, site);
    await openByToken(tab, digest, token);
    await tab.page.getByText('This is its begin').waitFor();
    await tab.check();
    const browser = site.browser();
    await sendForm(browser, `/jobs/receipts/${digest}`, { token }, { action: '/jobs/receipts' });
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const file = await fetch(`${site.url}/jobs/receipts/${digest}/result`, { headers: { cookie } });
    expect(Buffer.from(await file.arrayBuffer()).equals(whole)).toBe(true);
    expect(file.headers.get('content-type')).toBe('application/octet-stream');
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; filename="result-[0-9a-f]{10}"$/);
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('that no runner could make leaves a receipt that says who does what now', async () => {
    const site = await startJobsSite(chain, () => ({ status: 400, body: 'no' }));
    const buyer = await openBuyer(site);
    await order(buyer.page, 'impossible');
    await payButton(buyer.page).click();
    await buyer.page.getByText('The operator runs it again or pays the money back').waitFor();
    await buyer.tour.look('jobs-dead-letter');
    expect(site.runner.deliveries).toHaveLength(1);
  });
});

/** Pays with the official client, and returns what opens the receipt. */
async function buy(site: JobsSite, owner?: FundedWallet) {
  const { key } = owner ?? (await fundedWallet(chain));
  const { body } = await payForOneJob({
    gatewayUrl: site.url,
    privateKey: key,
    serviceId: 1,
    jobIndex: 1,
    body: 'hello',
  });
  return { digest: body.quote_digest, token: body.receipt_token };
}

async function openByToken({ page }: Tab, digest: string, token: string): Promise<void> {
  await page.goto(`/jobs/receipts/${digest}`);
  await page.getByLabel('Receipt token').first().fill(token);
  await page.getByRole('button', { name: 'Show the result' }).click();
}

describe('receipts', () => {
  test('are listed, with their results, only for a user who signed in with the wallet that paid', async () => {
    const site = await startJobsSite(chain, echo);
    const [owner, other] = [await fundedWallet(chain), await fundedWallet(chain)];
    const [own, others] = [await buy(site, owner), await buy(site, other)];
    const person = site.browser();
    await signInByWallet(person, owner.account);
    await eventually(async () => expect((await person.get('/jobs/receipts')).text).toContain(own.digest));
    const list = (await person.get('/jobs/receipts')).text;
    expect(list).not.toContain(others.digest);
    expect(list).toContain(owner.payer satisfies Address);
    expect((await person.get(`/jobs/receipts/${own.digest}`)).text).toContain('>hello<');
    for (const [browser, { digest }] of [
      [person, others],
      [site.browser('203.0.113.9'), own],
    ] as const) {
      const { status, text } = await browser.get(`/jobs/receipts/${digest}`);
      expect(status).toBe(200);
      expect(text).not.toContain('>hello<');
      expect((await browser.get(`/jobs/receipts/${digest}/result`)).status).toBe(404);
    }
    expect((await site.browser().get(`/jobs/receipts/0x${'1'.repeat(64)}`)).status).toBe(404);
  });

  test('open in a browser without JavaScript by their token, and by no other', async () => {
    const site = await startJobsSite(chain, echo);
    const [one, another] = [await buy(site), await buy(site)];
    const browser = site.browser();
    const open = (token: string) =>
      sendForm(browser, `/jobs/receipts/${one.digest}`, { token }, { action: '/jobs/receipts' });
    for (const token of ['', 'x', another.token, `${one.token}~`]) {
      expect((await open(token)).headers.get('location')).toContain('notice=wrong_receipt_token');
      expect((await browser.get(`/jobs/receipts/${one.digest}`)).text).not.toContain('>hello<');
    }
    const opened = await open(one.token);
    expect(opened.headers.get('location')).toBe(`/jobs/receipts/${one.digest}`);
    expect(opened.headers.getSetCookie().join()).toContain('HttpOnly; SameSite=Lax');
    expect((await browser.get(`/jobs/receipts/${one.digest}`)).text).toContain('>hello<');
    expect((await browser.get('/jobs/receipts')).text).toContain(one.digest);
    // a cookie that was edited opens nothing
    browser.cookies.set('tollbook.receipts', `${one.digest}.${another.token}`);
    expect((await browser.get(`/jobs/receipts/${one.digest}`)).text).not.toContain('>hello<');
  });

  test('that a browser has opened are closed to its next user after a sign-out', async () => {
    const site = await startJobsSite(chain, echo);
    const { digest, token } = await buy(site);
    for (const [page, action] of [
      ['/jobs', '/sign-out'],
      ['/account', '/account/sessions/end-all'],
    ] as const) {
      const browser = site.browser();
      await signInByWallet(browser);
      await sendForm(browser, `/jobs/receipts/${digest}`, { token }, { action: '/jobs/receipts' });
      expect((await browser.get(`/jobs/receipts/${digest}`)).text).toContain('>hello<');
      await sendForm(browser, page, {}, { action });
      expect((await browser.get(`/jobs/receipts/${digest}`)).text).not.toContain('>hello<');
    }
  });
});

test('a price in dollars is shown in dollars, with the tokens that pay it', async () => {
  const browser = (await startJobsSite(chain, echo)).browser();
  expect((await browser.get('/jobs')).text).toMatch(/1\.5 USD<\/span>\s*<span class="hint">in USDC</);
  expect((await browser.get('/jobs/1/6')).text).toMatch(
    /In dollars[^]*1\.5 USD[^]*1\.5 <span class="unit">USDC/,
  );
});

test('the pages of a gateway that sells no jobs have none of them', async () => {
  const site = await startSite();
  expect((await site.browser().get('/jobs')).status).toBe(404);
  expect((await site.browser().get('/')).text).not.toContain('/jobs');
});
