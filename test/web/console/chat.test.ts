import { expect, test } from 'vitest';
import { accountStream, openCreditAccount } from '../../../src/accounts/use-cases/credit/credit.ts';
import { issueApiKey } from '../../../src/accounts/use-cases/api-keys.ts';
import { findAccount } from '../../../src/accounts/store/credit.ts';
import { readLastEvent } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { createBrowser, signIn, signUp } from '../../support/identity.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chromium = useBrowser();

async function startWithAccount() {
  const gateway = await startConsole();
  const { pool } = gateway.database;
  const ledger = { pool, lane: laneOn(gateway.database) };
  const accountId = await openCreditAccount(ledger, 'acme:production');
  await issueApiKey(ledger, { accountId, name: 'build <b>server</b>', capMicros: 5_000_000n });
  return { gateway, accountId, path: `/console/chat/accounts/${accountId}` };
}

test.skipIf(!hasBrowser)(
  'finance finds an account by its name and grants it credit, with a reason, under their own name',
  async () => {
    const { gateway, accountId, path } = await startWithAccount();
    const grace = await signInOperator(gateway, { name: 'grace', role: 'finance' });
    const tab = await operatorTab(chromium, gateway, grace);
    const tour = startTour(tab);
    await tour.open('/console/chat', 'console-chat');
    await tab.page.goto('/console/chat/accounts');
    const { page } = tab;
    await page.keyboard.press('/');
    await page.keyboard.type('acme:production');
    await page.keyboard.press('Enter');
    await page.getByLabel('Amount').fill('12.5');
    await page.getByLabel('Why').fill('for the outage of Monday');
    await page.getByRole('button', { name: 'Grant credit' }).click();
    await page.getByRole('button', { name: 'Press again' }).click();
    await page.getByText('The credit was granted.').waitFor();
    await page
      .getByText('It has 12.50 USD of credit. 1 key may spend it, up to the limits of the key.')
      .waitFor();
    await tour.open(path, 'console-account');
    // a customer by the address that they write from
    const carol = createBrowser(gateway.url, '203.0.113.7');
    await signUp(gateway, carol, 'carol@example.org');
    await signIn(carol, 'carol@example.org');
    expect((await carol.get('/keys')).status).toBe(200);
    await tour.open('/console/chat/accounts', 'console-accounts');
    await page.keyboard.press('/');
    await page.keyboard.type('Carol@example.org');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'carol@example.org' }).waitFor();
    await page.goto('/console/chat/accounts?q=nobody@example.org');
    await page.getByText('No such account').waitFor();
    expect((await findAccount(gateway.database.db, { accountId }))?.balanceMicros).toBe(12_500_000);
    expect((await readLastEvent(gateway.database.pool, accountStream(accountId)))?.data).toEqual({
      account_id: accountId,
      amount_micros: '12500000',
      operator: 'grace',
      why: 'for the outage of Monday',
      currency: 'USD',
    });
  },
);

test('a grant without an amount or a reason changes nothing, and one that is sent twice is done once', async () => {
  const { gateway, accountId, path } = await startWithAccount();
  const grace = browserOf(gateway, await signInOperator(gateway, { name: 'grace', role: 'finance' }));
  const action = `${path}/grant`;
  for (const typed of [
    { amount: '-1', why: 'x' },
    { amount: '1', why: '' },
    { amount: '1', why: 'for ada@example.org' },
  ]) {
    const refused = await sendForm(grace, path, typed, { action });
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('Nothing was granted')]);
  }
  const form = formsIn((await grace.get(path)).text).find((one) => one.action === action);
  const sent = { ...form?.fields, amount: '1', why: 'once' };
  for (let times = 0; times < 2; times++)
    expect((await postForm(grace, action, sent)).headers.get('location')).toBe(
      `${path}?notice=credit_granted`,
    );
  expect((await findAccount(gateway.database.db, { accountId }))?.balanceMicros).toBe(1_000_000);
  expect((await grace.get('/console/chat/accounts?q=nobody')).text).toContain('No such account');
});
