import path from 'node:path';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../src/config/environment.ts';
import { grantCredit } from '../../src/credit/credit.ts';
import { findAccountId } from '../../src/store/credit.ts';
import { accountNameOf } from '../../src/store/identity.ts';
import { hasBrowser, useBrowser } from '../support/browser.ts';
import { laneOn } from '../support/credit.ts';
import { signIn, signUp } from '../support/identity.ts';
import { openTab, startSite, type Tab } from '../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';

/** With a directory in SCREENSHOTS every page is kept there as a picture: desktop and phone, light and dark. */
const { SCREENSHOTS: pictures } = processEnvironment();

async function look({ page, check }: Tab, name: string): Promise<void> {
  await check();
  for (const [size, viewport] of Object.entries({
    phone: { width: 390, height: 844 },
    desktop: { width: 1_180, height: 800 },
  })) {
    await page.setViewportSize(viewport);
    const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    expect(isTooWide, `${name} scrolls sideways on a ${size}`).toBe(false);
    for (const colorScheme of pictures ? (['light', 'dark'] as const) : []) {
      await page.emulateMedia({ colorScheme });
      const file = path.join(pictures ?? '', `${name}-${size}-${colorScheme}.png`);
      await page.screenshot({ path: file, fullPage: true });
    }
  }
}

test.skipIf(!hasBrowser)(
  'axe finds nothing on any page in light and dark, none is wider than a phone, over 100 kB or asks another origin',
  async () => {
    const gateway = await startSite({
      identity:
        '[[identity.providers]]\nname = "github"\npreset = "github"\nclient_id = "x"\nclient_secret_env = "SECRET"',
      env: { SECRET: 'x' },
    });
    const tab = await openTab(chromium, gateway);
    const { page } = tab;
    for (const where of [
      '/',
      '/sign-in',
      '/sign-up',
      '/sign-up/sent?email=ada@example.org',
      '/forgot-password',
      '/forgot-password/sent',
      '/reset-password?token=abc',
    ]) {
      await tab.open(where);
      await look(tab, `visitor${where.replace(/\?.*/, '').replaceAll('/', '-')}`);
    }
    const person = gateway.browser();
    await signUp(gateway, person, email);
    await signIn(person, email);
    await signIn(gateway.browser('203.0.113.7'), email);
    const [name = '', value = ''] = [...person.cookies].find(([one]) => one.endsWith('session_token')) ?? [];
    await tab.context.addCookies([{ name, value, url: gateway.url }]);
    for (const where of ['/', '/keys', '/credit']) {
      await tab.open(where);
      await look(tab, `new${where.replaceAll('/', '-')}`);
    }
    const userId = (await person.get('/api/auth/get-session')).json.user.id as string;
    const accountId = (await findAccountId(gateway.database.pool, accountNameOf(userId))) ?? 0;
    const lane = laneOn(gateway.database);
    for (const micros of [25_000_000n, 1_234_567n, 890n]) await grantCredit({ lane }, accountId, micros);
    await person.post('/api/keys', {
      name: 'The website’s assistant',
      cap: '50',
      budget: { amount: '10', period: 'month' },
    });
    await person.post('/api/keys', { name: 'x'.repeat(64), expires_at: '2099-01-01T00:00:00Z' });
    await person.request('DELETE', '/api/keys/1');
    await person.post('/api/keys', { name: 'Nightly report' });
    for (const where of [
      '/',
      '/keys',
      '/keys/new?name=My+laptop&cap=5',
      '/keys/3/revoke',
      '/keys/99/revoke',
      '/credit',
      '/account',
    ]) {
      await tab.open(where);
      await look(tab, `user${where.replace(/\?.*/, '').replaceAll('/', '-')}`);
    }
    await tab.open('/keys/new?name=My+laptop&cap=five');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByText('An amount above zero').waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe('My laptop');
    await look(tab, 'user-keys-refused');
    await page.getByLabel('Most that it may spend').fill('5');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    await look(tab, 'user-keys-made');
  },
);
