import { beforeAll, describe, expect, test } from 'vitest';
import { makeFormToken } from '../../../src/web/pages/form-token.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import {
  type Browser,
  goodPassword,
  type IdentityGateway,
  identitySecret,
  signIn,
  signInByWallet,
  signUp,
  useIdentityGateway,
} from '../../support/identity.ts';
import { allEvents } from '../../support/invariants.ts';
import { useChain } from '../../support/devnet.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { useShared } from '../../support/shared.ts';
import { openTab, postForm, startSite, type Tab } from '../../support/site.ts';
import { registeredPages } from '../../support/tour.ts';

const chromium = useBrowser();
const chain = useChain();
const email = 'ada@example.org';
const sessionCookie = 'tollbook.session_token';

const filled = (route: string): string => route.replaceAll(/:\w+/g, '1');
const tokenIn = (text: string): string => /name="form" value="([^"]+)"/.exec(text)?.[1] ?? '';

/** Text that is more than text, or turns around what is beside it. A field alone shows what was typed as it was typed. */
function isDangerous(text: string): boolean {
  const around = text.replaceAll(/ value="[^"]*"|(?<=<textarea[^>]*>)[^<]*/g, '');
  return /<script>/.test(text) || /[\u202a-\u202e\u2066-\u2069]/.test(around);
}

async function countOf({ database }: IdentityGateway, table: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(`select count(*)::int as n from ${table}`);
  return rows[0]?.n ?? 0;
}

async function give({ context }: Tab, browser: Browser, url: string): Promise<void> {
  const value = browser.cookies.get(sessionCookie) ?? '';
  await context.addCookies([{ name: sessionCookie, value, url }]);
}

/** Forms that check what was typed, and write nothing. */
const lookUps = ['/jobs/1/1/order'];

/** A gateway for accounts and models, and one that sells jobs too, with the pages that it has more. */
const startShared = useIdentityGateway(undefined, startSite);
const sharedJobs = useShared(() => startJobsSite(chain, echo));
const sites = [
  { start: startShared, hasJobs: false },
  { start: async () => sharedJobs(), hasJobs: true },
] as const;

async function routesOf(method: 'GET' | 'POST', hasJobs: boolean): Promise<string[]> {
  const all = await registeredPages(method);
  return hasJobs ? (await registeredPages(method, { hasJobs })).filter((route) => !all.includes(route)) : all;
}

describe.each(sites)('every form that is registered (of jobs: $hasJobs)', ({ start, hasJobs }) => {
  let actions: string[] = [];
  beforeAll(async () => {
    actions = (await routesOf('POST', hasJobs)).map(filled);
  });

  test('changes nothing without the token of its own session, or with one that is too old', async () => {
    const gateway = await start();
    const [browser, stranger, visitor] = [
      gateway.browser(),
      gateway.browser('198.51.100.1'),
      gateway.browser('198.51.100.2'),
    ];
    await signInByWallet(browser);
    await signInByWallet(stranger);
    const own = tokenIn((await browser.get('/account')).text);
    const { json } = await browser.get('/api/auth/get-session');
    const dayMs = 86_400_000;
    const stale = makeFormToken([identitySecret], `session:${json.session.id}`, Date.now() - dayMs - 1_000);
    const fresh = makeFormToken([identitySecret], `session:${json.session.id}`, Date.now() - dayMs + 60_000);
    const early = makeFormToken([identitySecret], `session:${json.session.id}`, Date.now() + dayMs);
    const before = (await allEvents(gateway.database.db)).length;
    const tokens = {
      none: undefined,
      edited: `${own.slice(0, -1)}${own.endsWith('A') ? 'B' : 'A'}`,
      'of another session': tokenIn((await stranger.get('/account')).text),
      'of a visitor': tokenIn((await visitor.get('/sign-in')).text),
      'too old': stale,
      'of a day to come': early,
    };
    for (const action of actions.filter((one) => !lookUps.includes(one)))
      for (const [what, form] of Object.entries(tokens)) {
        const typed = { name: 'x', password: goodPassword, prompt: 'x', ...(form !== undefined && { form }) };
        const { status, headers, text } = await postForm(browser, action, typed);
        const said = headers.get('location') ?? text;
        expect([action, what, [303, 409].includes(status)]).toEqual([action, what, true]);
        expect(said, `${action} with a token ${what}`).toMatch(
          /notice=form_too_old|This form was opened in another session, or too long ago/,
        );
      }
    expect(await allEvents(gateway.database.db)).toHaveLength(before);
    expect((await browser.get('/account')).status).toBe(200);
    for (const action of lookUps.filter((one) => actions.includes(one)))
      expect((await postForm(browser, action, { whole: 'x' })).status).toBe(200);
    expect(await allEvents(gateway.database.db)).toHaveLength(before);
    const renamed = await postForm(browser, '/account/name', { name: 'Grace', form: fresh });
    expect(renamed.headers.get('location')).toBe('/account?notice=name_changed');
  });

  test('is refused from another origin, whatever its token', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const form = tokenIn((await browser.get('/account')).text);
    const before = (await allEvents(gateway.database.db)).length;
    const foreign: readonly Record<string, string>[] = [
      { origin: 'https://other.example' },
      { origin: 'null' },
      { origin: `${gateway.url}.other.example` },
      { origin: gateway.url.replace('http:', 'https:') },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const action of actions)
      for (const headers of foreign)
        expect([action, headers, (await postForm(browser, action, { form }, headers)).status]).toEqual([
          action,
          headers,
          403,
        ]);
    expect(await allEvents(gateway.database.db)).toHaveLength(before);
  });

  test('answers hostile values without a fault, and shows them as text', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const names =
      'name email password current next token provider credential session address message signature cap budget period expires model prompt system'.split(
        ' ',
      );
    const hostile = [
      '\0',
      '"><script>alert(1)</script>',
      '\u202e\u2066x',
      '-1',
      '9'.repeat(400),
      '../../x',
      '__proto__',
      '\ufffd\ufffe'.repeat(50),
      "'; drop table x; --",
      '$'.repeat(5_000),
    ];
    let client = 0;
    for (const action of actions) {
      // the one that ends the session of this test
      if (['/sign-out', '/account/sessions/end-all'].includes(action)) continue;
      for (const value of hostile) {
        const form = tokenIn((await browser.get('/account')).text);
        expect(form).not.toBe('');
        const headers = { 'x-forwarded-for': `10.1.${client >> 8}.${client++ & 255}` };
        const fields = Object.fromEntries(names.map((name) => [name, value]));
        const { status, text } = await postForm(browser, action, { ...fields, form }, headers);
        expect([action, value, status < 500]).toEqual([action, value, true]);
        expect([action, value, isDangerous(text)]).toEqual([action, value, false]);
      }
    }
  });
});

describe.each(sites)('every page that is registered (of jobs: $hasJobs)', ({ start, hasJobs }) => {
  test('cannot be framed, is in no shared cache, and answers a hostile address without a fault', async () => {
    const gateway = await start();
    const [user, visitor] = [gateway.browser(), gateway.browser('198.51.100.1')];
    await signInByWallet(user);
    const values = [
      '%00',
      '%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
      '%E2%80%AE',
      '-1',
      '9'.repeat(40),
      '%FF',
      '__proto__',
    ];
    const names = 'notice next email error id key_id from to model show name cap token why'.split(' ');
    const routes = await routesOf('GET', hasJobs);
    for (const route of routes)
      for (const browser of [user, visitor])
        for (const value of ['', ...values]) {
          const query = value === '' ? '' : `?${names.map((name) => `${name}=${value}`).join('&')}`;
          // bytes that are no text are refused before any route is chosen
          const parameter = value === '%FF' ? '1' : value.replaceAll('/', '%2F') || '1';
          const where = route.replaceAll(/:\w+/g, parameter) + query;
          const { status, headers, text } = await browser.get(where);
          const found = {
            isFault: status >= 500,
            isFramed: !headers.get('content-security-policy')?.includes("frame-ancestors 'none'"),
            frame: headers.get('x-frame-options'),
            // the form of an order alone is kept for the back button
            isCached: !['no-store', 'private, no-cache'].includes(headers.get('cache-control') ?? ''),
            isDangerous: isDangerous(text),
          };
          expect({ where, ...found }).toEqual({
            where,
            isFault: false,
            isFramed: false,
            frame: 'DENY',
            isCached: false,
            isDangerous: false,
          });
        }
  });
});

test('passwords and signatures are in no address to which a form leads, and what else was typed is', async () => {
  const gateway = await startShared();
  const browser = gateway.browser();
  for (const [action, fields, kept] of [
    ['/sign-in', { email, password: 'a secret of mine' }, 'email=ada%40example.org&'],
    ['/sign-up', { email, name: 'Ada', password: 'a secret of mine' }, 'email=ada%40example.org&name=Ada&'],
    ['/reset-password', { token: 'abc', password: 'a secret of mine' }, 'token=abc&'],
    ['/sign-in/wallet', { address: '0xsecret', message: 'secret', signature: '0xsecret' }, '/sign-in?notice'],
    ['/account/password', { current: 'a secret of mine', password: 'a secret' }, '/sign-in?next=%2Faccount&'],
  ] as const) {
    const { status, headers } = await postForm(browser, action, fields);
    expect([action, status]).toEqual([action, 303]);
    expect(headers.get('location')).not.toMatch(/secret/);
    expect(headers.get('location')).toContain(kept);
  }
});

test('a page for a fault says when to try again, and has the policy of every page', async () => {
  const gateway = await startSite();
  const browser = gateway.browser();
  await signInByWallet(browser);
  await gateway.database.away(true);
  const { status, headers, text } = await browser.get('/account');
  await gateway.database.away(false);
  expect(status).toBe(503);
  expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(text).toContain('This did not work');
});

describe.skipIf(!hasBrowser)('a person with a browser', () => {
  test('a sign-out leaves no page that the back button shows', async () => {
    const gateway = await startShared();
    const browser = gateway.browser();
    await signUp(gateway, browser, gateway.email);
    await signIn(browser, gateway.email);
    const tab = await openTab(chromium, gateway);
    await give(tab, browser, gateway.url);
    const { page } = tab;
    await page.goto('/account');
    await page.getByText(gateway.email).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByText('You are signed out.').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.content()).not.toContain(gateway.email);
  });

  test('who presses twice signs up and signs in once', async () => {
    const gateway = await startSite();
    const { page } = await openTab(chromium, gateway);
    await page.goto('/sign-up');
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign up' }).dblclick();
    await page.getByRole('heading', { name: 'Look into your mail' }).waitFor();
    const [mail = ''] = await gateway.mails(email);
    await page.goto(/^https?:\S+$/m.exec(mail)?.[0] ?? '');
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign in', exact: true }).dblclick();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(await gateway.mails(email)).toHaveLength(1);
    expect(await countOf(gateway, 'identity.session')).toBe(1);
  });
});
