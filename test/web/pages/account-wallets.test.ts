import path from 'node:path';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../../src/base/config/environment.ts';
import { devnetAddress } from '../../../src/devnet/accounts.ts';
import { createDevelopmentWallet } from '../../../src/devnet/wallet/wallet.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { goodPassword, newWallet, signIn, signInByWallet, signUp } from '../../support/identity.ts';
import { formsIn, openTab, postForm, sendForm, startSite } from '../../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';
const address = devnetAddress('payer');
const { SCREENSHOTS: pictures } = processEnvironment();

test.skipIf(!hasBrowser)(
  'a person adds the wallet of the browser, signs in with it, and removes it, but not the last way to sign in',
  async () => {
    // the pages ask the wallet to sign, and it asks no chain
    const pageAddition = await createDevelopmentWallet({ rpcUrl: 'http://127.0.0.1:1', chainId: 1 });
    const gateway = await startSite({ pageAddition });
    await signUp(gateway, gateway.browser(), email);
    const tab = await openTab(chromium, gateway);
    const { page } = tab;
    await tab.open('/sign-in?next=/account');
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const add = page.getByRole('button', { name: 'Add the wallet of this browser' });
    await add.click();
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByText('Add this wallet to the account').waitFor();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('You have not signed, so nothing was changed.').waitFor();
    await add.click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('You can sign in with this wallet now.').waitFor();
    await tab.check();
    if (pictures) await page.screenshot({ path: path.join(pictures, 'account-wallet.png'), fullPage: true });
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await tab.open('/sign-in?next=/account');
    await page.getByRole('button', { name: 'Continue with your wallet' }).click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText(email).waitFor();
    await page.getByRole('button', { name: `Remove the wallet ${address}` }).click();
    await page.getByText('That wallet cannot sign in to this account any more.').waitFor();
    expect(await page.getByText(address.slice(0, 8), { exact: false }).count()).toBe(1);
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await tab.open('/sign-in?next=/account');
    await page.getByRole('button', { name: 'Continue with your wallet' }).click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('none: you sign in with a wallet').waitFor();
    await page.getByRole('button', { name: `Remove the wallet ${address}` }).click();
    await page.getByText('This wallet is the only way to sign in to your account.').waitFor();
    await tab.check();
  },
);

test('the form that adds a wallet refuses what another wallet, another account or another page has signed', async () => {
  const gateway = await startSite();
  const [ada, thief] = [gateway.browser(), gateway.browser('198.51.100.1')];
  await signUp(gateway, ada, email);
  await signIn(ada, email);
  await signInByWallet(thief);
  const wallet = newWallet();
  const formOf = async (browser: typeof ada): Promise<Record<string, string>> =>
    formsIn((await browser.get('/account')).text).find(({ action }) => action === '/account/wallets')
      ?.fields ?? {};
  const fields = await formOf(ada);
  const { json } = await postForm(ada, '/account/wallets/message', { ...fields, address: wallet.address });
  const { message } = json as { message: string };
  const sent = { address: wallet.address, message, signature: await wallet.signMessage({ message }) };
  // another person, with their own form
  const theirs = await postForm(thief, '/account/wallets', { ...(await formOf(thief)), ...sent });
  expect([theirs.status, theirs.text.includes('is not the message that this page showed')]).toEqual([
    401,
    true,
  ]);
  // a form without its token, or from elsewhere, changes nothing
  expect((await postForm(ada, '/account/wallets', sent)).headers.get('location')).toBe(
    '/account?notice=form_too_old',
  );
  const elsewhere = { origin: 'https://other.example' };
  expect((await postForm(ada, '/account/wallets', { ...fields, ...sent }, elsewhere)).status).toBe(403);
  const { signature } = { signature: await newWallet().signMessage({ message }) };
  expect((await postForm(ada, '/account/wallets', { ...fields, ...sent, signature })).status).toBe(401);
  expect((await ada.get('/account')).text).not.toContain(wallet.address.toLowerCase());
  const done = await postForm(ada, '/account/wallets', { ...fields, ...sent });
  expect(done.headers.get('location')).toBe('/account?notice=wallet_linked');
  // the wallet of somebody else's account
  const other = newWallet();
  await signInByWallet(gateway.browser('198.51.100.2'), other);
  const again = await postForm(ada, '/account/wallets/message', { ...fields, address: other.address });
  const text = (again.json as { message: string }).message;
  const taken = await postForm(ada, '/account/wallets', {
    ...fields,
    address: other.address,
    message: text,
    signature: await other.signMessage({ message: text }),
  });
  expect([taken.status, taken.text.includes('accounts are not merged')]).toEqual([409, true]);
  await gateway.database.moveClock(601);
  const stale = await postForm(ada, '/account/wallets/message', { ...fields, address: other.address });
  expect([stale.status, stale.json.error]).toEqual([403, expect.stringContaining('within ten minutes')]);
  const kept = await sendForm(ada, '/account', {}, { action: '/account/wallets/remove' });
  expect([kept.status, kept.text.includes('within ten minutes')]).toEqual([403, true]);
});
