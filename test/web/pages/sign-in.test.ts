import { describe, expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { goodPassword, linkIn } from '../../support/identity.ts';
import { openTab, startSite } from '../../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';

describe.skipIf(!hasBrowser)('a person with a browser', () => {
  test.each([true, false])(
    'signs up, confirms and signs in (with JavaScript: %s)',
    async (javaScriptEnabled) => {
      const gateway = await startSite();
      const { page, check } = await openTab(chromium, gateway, { javaScriptEnabled });
      await page.goto('/sign-up');
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
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/');
      if (javaScriptEnabled) await check();
    },
  );
});
