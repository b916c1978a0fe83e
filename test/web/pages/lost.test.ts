import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { processEnvironment } from '../../../src/base/config/environment.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { signInByWallet, startIdentityGateway } from '../../support/identity.ts';
import { openTab, startSite } from '../../support/site.ts';

const chromium = useBrowser();
const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const { SCREENSHOTS: pictures } = processEnvironment();

describe('a browser', () => {
  test('sees a page with further links where there is no page, and where a form alone is taken', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    for (const [where, status, words] of [
      ['/no-such-page?<b>', 404, 'There is no page at this address.'],
      ['/keys/1/no/such', 404, 'There is no page at this address.'],
      ['/assets/other.css', 404, 'There is no page at this address.'],
      ['/sign-out', 405, 'takes a form that another page sends'],
    ] as const) {
      const answer = await browser.get(where, html);
      expect([where, answer.status, answer.headers.get('content-type')]).toEqual([
        where,
        status,
        'text/html; charset=utf-8',
      ]);
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(answer.text).toContain(words);
      for (const link of ['/', '/sign-in', '/sign-up', '/docs'])
        expect(answer.text).toContain(`href="${link}"`);
      expect(answer.text).not.toContain('<b>');
    }
    await signInByWallet(browser);
    const { text } = await browser.get('/no-such-page', html);
    expect(text).toContain('action="/sign-out"');
    for (const link of ['/keys', '/usage', '/credit', '/account']) expect(text).toContain(`href="${link}"`);
  });

  test('gets JSON from the paths of the API, as every other client gets it everywhere', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    for (const where of ['/api/no-such', '/v1/no-such', '/status/no-such', '/openapi.json/x'])
      expect([where, (await browser.get(where, html)).headers.get('content-type')]).toEqual([
        where,
        'application/json; charset=utf-8',
      ]);
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }] as Record<
      string,
      string
    >[]) {
      const { status, json } = await browser.get('/no-such-page', headers);
      expect([status, json.code]).toEqual([404, 'not_found']);
    }
    const without = await startIdentityGateway();
    expect((await without.browser().get('/no-such-page', html)).json.code).toBe('not_found');
  });

  test('sees a page with the request’s id where the gateway fails, and can ask again', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    await signInByWallet(browser);
    await gateway.database.asOwner((owner) => owner.query('alter table identity.wallet rename to away'));
    const { status, headers, text } = await browser.get('/account?next=%22%3E', html);
    await gateway.database.asOwner((owner) => owner.query('alter table identity.away rename to wallet'));
    expect(status).toBe(500);
    expect(text).toContain(`Request ${headers.get('x-request-id')}.`);
    expect(text).toContain('href="/account?next=%22%3E"');
    expect(text).not.toMatch(/relation|identity\.wallet/);
    expect((await browser.get('/account', html)).status).toBe(200);
  });

  test.skipIf(!hasBrowser)('finds them accessible, on a phone too', async () => {
    const gateway = await startSite();
    const tab = await openTab(chromium, gateway);
    await tab.page.setViewportSize({ width: 390, height: 844 });
    await tab.open('/no-such-page');
    await tab.check();
    if (pictures) await tab.page.screenshot({ path: path.join(pictures, 'lost.png') });
    await tab.page.getByRole('main').getByRole('link', { name: 'Overview' }).click();
    expect(new URL(tab.page.url()).pathname).toBe('/');
  });
});
