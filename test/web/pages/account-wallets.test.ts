import path from 'node:path';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../../src/base/config/environment.ts';
import { devnetAddress } from '../../../src/devnet/accounts.ts';
import { createDevelopmentWallet } from '../../../src/devnet/wallet/wallet.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { goodPassword, signUp } from '../../support/identity.ts';
import { openTab, startSite } from '../../support/site.ts';

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
