import { expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { useChain } from '../../support/devnet.ts';
import { signInByWallet } from '../../support/identity.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { useShared } from '../../support/shared.ts';
import { openTab } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chain = useChain();
const chromium = useBrowser();
const site = useShared(() => startJobsSite(chain, echo, { hasModels: false }));
const html = { accept: 'text/html' };

test.each(['/try', '/keys', '/usage', '/usage/requests', '/credit'])(
  'a gateway that sells jobs alone has no page %s, and no page of it leads there',
  async (where) => {
    const browser = site().browser();
    for (const isSignedIn of [false, true]) {
      if (isSignedIn) await signInByWallet(browser);
      expect([isSignedIn, (await browser.get(where, html)).status]).toEqual([isSignedIn, 404]);
      for (const page of ['/', '/jobs', '/jobs/1/1', '/jobs/receipts', '/account', '/no-such-page']) {
        if (page === '/account' && !isSignedIn) continue;
        const { text } = await browser.get(page, html);
        const leads = new RegExp(`href="(?:${where}|/v1)[/?"]`).test(text);
        expect([page, leads]).toEqual([page, false]);
      }
    }
  },
);

test('its first page shows each job with a line for a shell, and for users where their paid calls are', async () => {
  const browser = site().browser();
  const { text: visitors } = await browser.get('/', html);
  expect(visitors).toContain('Jobs, paid by the call');
  expect(visitors).toContain(`curl -i -X POST &#39;${site().url}/x402/jobs/1/1&#39;`);
  await signInByWallet(browser);
  const { text: users } = await browser.get('/', html);
  expect(users).toContain('Your paid calls');
  expect(users).toContain('href="/jobs/receipts"');
  expect((await browser.get('/docs', html)).status).toBe(200);
});

test.skipIf(!hasBrowser)('axe finds nothing on its first page', async () => {
  const tab = await openTab(chromium, site());
  const tour = startTour(tab);
  await tour.open('/', 'jobs-alone-home');
  // the browser's clock is that of Tokyo
  expect(await tab.page.locator('footer p').textContent()).toBe(
    'All days and times are UTC: your clock is 9 h ahead.',
  );
  const browser = site().browser();
  await signInByWallet(browser);
  const cookies = [...browser.cookies].map(([name, value]) => ({ name, value, url: site().url }));
  await tab.context.addCookies(cookies);
  await tour.open('/', 'jobs-alone-user');
});
