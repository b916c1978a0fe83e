import path from 'node:path';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../src/config/environment.ts';
import { grantCredit } from '../../src/credit/credit.ts';
import { findAccountId } from '../../src/store/credit.ts';
import { accountNameOf } from '../../src/store/identity.ts';
import { hasBrowser, useBrowser } from '../support/browser.ts';
import { ask, paidModel } from '../support/chat-gateway.ts';
import { laneOn } from '../support/credit.ts';
import type { TestDatabase } from '../support/database.ts';
import { signIn, signUp } from '../support/identity.ts';
import { openTab, startSite, type Tab } from '../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';

/** With a directory in SCREENSHOTS every page is kept there as a picture: desktop and phone, light and dark. */
const { SCREENSHOTS: pictures } = processEnvironment();

/** A month in which ten models were asked, with and without keys, by names that are not friendly. */
async function addUsage(database: TestDatabase, accountId: number): Promise<void> {
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.usage_day
        (generation, account_id, day, model, key_id, requests, failed, prompt_tokens, completion_tokens, cached_tokens, cost)
      select 1, $1, (now() at time zone 'UTC')::date - day, 'vendor/<b>model-' || model, key, 3 * model + day % 7, day % 3,
        1234 * (day % 9 + 1) * model, 321 * (day % 5 + 1), 100 * (day % 9), 4321 * (day % 11) * model
      from generate_series(0, 29) day, generate_series(0, 3) key, generate_series(1, 10) model where day % 6 < 5`,
      [accountId],
    ),
  );
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** A name for the picture of a page: its path, and of its query the values. */
function nameOf(where: string): string {
  return where.replace(/id=[0-9a-f-]{36}/, '').replaceAll(/[^\w-]+/g, '-');
}

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
    for (const where of ['/', '/keys', '/usage', '/credit']) {
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
    const answer = await person.post('/v1/chat/completions', ask('Hello', paidModel));
    const request = `/usage/generation?id=${answer.headers.get('x-request-id')}`;
    await addUsage(gateway.database, accountId);
    for (const where of [
      '/',
      '/usage',
      '/usage?from=2026-02-30',
      request,
      '/usage/generation?id=unknown',
      '/keys',
      '/keys/new?name=My+laptop&cap=5',
      '/keys/3/revoke',
      '/keys/99/revoke',
      '/credit',
      '/account',
    ]) {
      await tab.open(where);
      if (where === '/usage') await page.getByText('The numbers of this chart').click();
      await look(tab, `user${nameOf(where)}`);
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
    const plain = await openTab(chromium, gateway, { javaScriptEnabled: false });
    await plain.context.addCookies([{ name, value, url: gateway.url }]);
    await plain.open('/usage?model=vendor%2F%3Cb%3Emodel-3&show=tokens');
    await plain.page.getByLabel('First day').fill(daysAgo(1));
    await plain.page.getByLabel('Last day').fill(daysAgo(0));
    await plain.page.getByRole('button', { name: 'Show' }).click();
    await plain.page.getByText('Only vendor/<b>model-3').waitFor();
    expect(await plain.page.locator('svg .column').count()).toBe(2);
    const [file] = await Promise.all([
      plain.page.waitForEvent('download'),
      plain.page.getByRole('link', { name: 'Download as CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(`usage-${daysAgo(1)}-${daysAgo(0)}.csv`);
    await plain.page.getByRole('link', { name: 'Last 90 days' }).click();
    await plain.page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(new URL(plain.page.url()).search).toContain(`from=${daysAgo(89)}&to=${daysAgo(0)}&model=`);
  },
);
