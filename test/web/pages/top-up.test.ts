import type { Route } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { expectBooks } from '../../support/credit.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { openTab } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { eventsOf } from '../../support/top-up.ts';
import {
  expectNothingCharged,
  openCustomer,
  openWithWallet,
  outcomeOf,
  payButton,
  press,
  signatures,
} from '../../support/top-up-page.ts';
import { injectWallet } from '../../support/wallet.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const chain = useChain();
const added = '10.00 USD were added: you can spend 10.00 USD now.';
const isPayment = (route: Route): boolean => route.request().headers()['payment-signature'] !== undefined;

describe.skipIf(!hasBrowser)('a signed-in user tops up from the page of credit', () => {
  test('with any wallet: its payment is credited to the account of the session, which the page shows with its receipt', async () => {
    const customer = await openWithWallet(chromium, chain);
    const { gateway, tab, userId, paying, wallet } = customer;
    const { page } = tab;
    const tour = startTour(tab);
    await page.getByText('No credit yet').waitFor();
    await payButton(tab).waitFor();
    await tour.look('credit-top-up');
    await press(customer);
    await page.getByText(added).waitFor();
    expect(await page.locator('[data-balance] .amount').textContent()).toBe('10.00 USD');
    await page.locator('[data-history]').getByRole('cell', { name: '+10.00 USD' }).waitFor();
    for (const step of await page.locator('.steps li').all())
      expect(await step.getAttribute('data-state')).toBe('done');
    await tour.look('credit-topped-up');
    await page.getByRole('link', { name: 'See the receipt' }).click();
    await page.getByRole('heading', { name: '+10.00 USD of credit' }).waitFor();
    await page.getByText(`${paying.payer.slice(0, 8)}…`).waitFor();
    await tab.open('/credit');
    await page.getByRole('cell', { name: 'Top-up' }).waitFor();
    expect(await outcomeOf(tab).isVisible()).toBe(false);

    const opened = (await eventsOf(gateway.database, 'credit_account_opened')).find(
      ({ data }) => data.name === `user:${userId}`,
    );
    const [bought, ...more] = await eventsOf(gateway.database, 'credit_topped_up');
    expect(more).toEqual([]);
    expect(bought?.data).toMatchObject({
      account_id: opened?.data.account_id,
      payer: paying.payer,
      amount_micros: '10000000',
    });
    const [started] = await eventsOf(gateway.database, 'settlement_started');
    expect(started?.data.top_up_order).toMatch(new RegExp(`^tollbook-top-up:1:${opened?.data.account_id}:`));
    expect(started?.data.payment.nonce).toBe(started?.data.body_sha256);
    expect(await chain.balance(paying.payer)).toBe(90_000_000n);
    expect(signatures(wallet)).toBe(1);
    await expectBooks(gateway.database);
  });

  test('for an amount that the user chooses, a whole multiple of what is offered, which the page shows in dollars', async () => {
    const customer = await openWithWallet(chromium, chain);
    const { gateway, tab, paying } = customer;
    const { page } = tab;
    await payButton(tab).waitFor();
    const units = page.getByLabel('Number of top-ups');
    const total = page.locator('[data-total]');
    expect(await total.textContent()).toBe('10.00 USD for 10 USDC');
    for (const refused of ['0', '101', '1.5']) {
      await units.fill(refused);
      expect([refused, await total.textContent()]).toEqual([refused, '']);
      await press(customer);
    }
    await units.fill('3');
    expect(await total.textContent()).toBe('30.00 USD for 30 USDC');
    await press(customer);
    await page.getByText('30.00 USD were added: you can spend 30.00 USD now.').waitFor();
    await page.locator('[data-history]').getByRole('cell', { name: '+30.00 USD' }).waitFor();
    await page.getByRole('link', { name: 'See the receipt' }).click();
    await page.getByRole('heading', { name: '+30.00 USD of credit' }).waitFor();
    const [bought, ...more] = await eventsOf(gateway.database, 'credit_topped_up');
    expect(more).toEqual([]);
    expect(bought?.data).toMatchObject({ payer: paying.payer, atoms: '30000000', amount_micros: '30000000' });
    expect(await chain.balance(paying.payer)).toBe(70_000_000n);
    await expectBooks(gateway.database);
  });

  test('and is charged once where the connection drops after the signature, although the page is loaded again meanwhile', async () => {
    const customer = await openWithWallet(chromium, chain);
    const { gateway, tab, paying, wallet } = customer;
    const { page, context } = tab;
    let dropped = 0;
    // the first reaches the gateway and loses its answer; the others reach nothing
    await context.route('**/x402/jobs/9/0', async (route) => {
      if (!isPayment(route)) return route.continue();
      dropped += 1;
      if (dropped === 1) await route.fetch();
      return route.abort('connectionreset');
    });
    await press(customer);
    await page
      .getByText('Your payment of 10 USDC is signed; its outcome is not known yet. Do not pay again.')
      .waitFor();
    await startTour(tab).look('credit-top-up-waiting');
    await tab.open('/credit');
    await page
      .getByText('Your payment of 10 USDC is signed; its outcome is not known yet. Do not pay again.')
      .waitFor();
    expect(await payButton(tab).isVisible()).toBe(false);
    await context.unroute('**/x402/jobs/9/0');
    await page.getByText(added).waitFor();
    expect(dropped).toBeGreaterThan(1);
    expect(signatures(wallet)).toBe(1);
    expect(await chain.balance(paying.payer)).toBe(90_000_000n);
    expect(await eventsOf(gateway.database, 'credit_topped_up')).toHaveLength(1);
    await tab.open('/credit');
    await eventually(async () => expect(await payButton(tab).isVisible()).toBe(true));
    expect(await outcomeOf(tab).isVisible()).toBe(false);
  });

  test('and sees that the outcome of the payment is not known yet, and then the credit', async () => {
    const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
    proxy.faults.settle = 'cut_after';
    const customer = await openWithWallet(chromium, chain, { facilitatorUrl: proxy.url });
    const { tab, paying, wallet } = customer;
    await press(customer);
    await tab.page.getByText(added).waitFor();
    expect(signatures(wallet)).toBe(1);
    expect(await chain.balance(paying.payer)).toBe(90_000_000n);
    await proxy.close();
  });

  test('and where the session ends before, nothing is signed; where it ends after the signature, the credit still arrives', async () => {
    const customer = await openWithWallet(chromium, chain);
    const { gateway, tab, wallet } = customer;
    const cookies = await tab.context.cookies();
    await tab.context.clearCookies();
    await press(customer);
    await tab.page
      .getByText('Your session has ended, or this page is too old. Nothing was charged.')
      .waitFor();
    await expectNothingCharged(chain, customer);
    expect(wallet.asked).toEqual([]);
    await tab.context.addCookies(cookies);
    wallet.otherwise.set('eth_signTypedData_v4', async (params) => {
      await tab.context.clearCookies();
      return wallet.answer('eth_signTypedData_v4', params);
    });
    await press(customer);
    await tab.page.getByText(added).waitFor();
    expect(await eventsOf(gateway.database, 'credit_topped_up')).toHaveLength(1);
  });

  test('at the price that the page shows: where it has changed, nothing is signed', async () => {
    const customer = await openWithWallet(chromium, chain);
    const { tab, wallet } = customer;
    await tab.page.evaluate(`document.querySelector('[data-amount]').dataset.amount = '9000000'`);
    await press(customer);
    await tab.page
      .getByText('The price is 10 USDC now, and was 9 USDC when this page was loaded. Nothing was charged.')
      .waitFor();
    expect(signatures(wallet)).toBe(0);
  });

  test('with the wallet that is chosen, where the browser has several (EIP-6963)', async () => {
    const customer = await openCustomer(chromium, chain);
    const { tab, gateway } = customer;
    const { paying } = await openWithWallet(chromium, chain);
    await injectWallet(tab.context, { account: paying.account, rpcUrl: chain.rpcUrl });
    await tab.context.addInitScript(`
      const real = window.ethereum;
      const other = { request: async () => { throw new Error('the other wallet was asked'); } };
      delete window.ethereum;
      const announce = (uuid, name, provider) =>
        dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: { info: { uuid, name }, provider } }));
      addEventListener('eip6963:requestProvider', () => {
        announce('1', 'Other <b>wallet</b>', other);
        announce('2', 'Good wallet', real);
      });`);
    await tab.open('/credit');
    await tab.page.getByLabel('Good wallet').check();
    await startTour(tab).look('credit-top-up-wallets');
    await press(customer);
    await tab.page.getByText(added).waitFor();
    expect(await eventsOf(gateway.database, 'credit_topped_up')).toHaveLength(1);
  });

  test('not without a wallet or JavaScript: the page says how else to pay', async () => {
    const { tab, gateway } = await openCustomer(chromium, chain);
    await tab.open('/credit');
    await tab.page.getByText('This browser has no wallet, or JavaScript is off').waitFor();
    expect(await payButton(tab).isVisible()).toBe(false);
    await startTour(tab).look('credit-top-up-without-wallet');
    const plain = await openTab(chromium, gateway, { javaScriptEnabled: false });
    await plain.context.addCookies(await tab.context.cookies());
    await plain.open('/credit');
    await plain.page.getByText('This browser has no wallet, or JavaScript is off').waitFor();
    expect(await payButton(plain).isVisible()).toBe(false);
  });
});
