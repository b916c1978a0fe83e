import { describe, expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { goodPassword, signIn, signInByWallet, signUp, useIdentityGateway } from '../../support/identity.ts';
import { formsIn, postForm, sendForm, startSite } from '../../support/site.ts';

const sessionCookie = 'tollbook.session_token';

const start = useIdentityGateway(undefined, startSite);

test('a page cannot be framed, runs nothing inline and asks no other origin', async () => {
  const gateway = await start();
  const { headers, text } = await gateway.browser().get('/sign-in');
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
      "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  );
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('cache-control')).toBe('no-store');
  expect(text).not.toMatch(/<style|style="|\son[a-z]+="|<script(?! type="module" src="\/assets\/)/);
  expect(text).not.toMatch(/(?:src|href|action)="(?!\/|#)/);
});

test('a form without its token, with a stranger’s, or from another origin signs no user in', async () => {
  const gateway = await start();
  const browser = gateway.browser();
  await signUp(gateway, browser, gateway.email);
  const typed = { email: gateway.email, password: goodPassword };
  const stranger = gateway.browser('198.51.100.1');
  const [theirs] = formsIn((await stranger.get('/sign-in')).text).filter(
    ({ action }) => action === '/sign-in',
  );
  const own = { origin: gateway.url };
  for (const [fields, headers] of [
    [typed, own],
    [{ ...typed, form: 'x' }, own],
    [{ ...typed, form: theirs?.fields['form'] ?? '' }, own],
  ] as const) {
    const answer = await postForm(browser, '/sign-in', fields, headers);
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(
      `/sign-in?email=${encodeURIComponent(gateway.email)}&notice=form_too_old`,
    );
  }
  for (const headers of [
    { origin: 'https://other.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ])
    expect((await sendForm(browser, '/sign-in', typed, { headers })).status).toBe(403);
  expect(browser.cookies.has(sessionCookie)).toBe(false);
  expect((await sendForm(browser, '/sign-in', typed)).headers.get('location')).toBe('/');
  expect(browser.cookies.has(sessionCookie)).toBe(true);
});

test.each([
  'https://other.example/',
  '//other.example',
  '/..//other.example',
  '/\\other.example',
  'javascript:alert(1)',
])('after a sign-in nobody is led to %s', async (next) => {
  const gateway = await start();
  const browser = gateway.browser();
  await signUp(gateway, browser, gateway.email);
  const page = `/sign-in?next=${encodeURIComponent(next)}`;
  expect((await browser.get(page)).text).not.toContain('other.example');
  const typed = { email: gateway.email, password: goodPassword, next };
  const { headers } = await sendForm(browser, page, typed);
  expect(headers.get('location')).toBe('/');
  expect((await browser.get(page)).headers.get('location')).toBe('/');
});

describe('a stranger', () => {
  test('learns from no form whether an address has an account', async () => {
    const gateway = await start();
    await signUp(gateway, gateway.browser(), gateway.email);
    const answers = async (address: string) => {
      const browser = gateway.browser(address === gateway.email ? '198.51.100.1' : '198.51.100.2');
      const up = { email: address, name: 'x', password: 'another good password' };
      const sent = [
        await sendForm(browser, '/sign-up', up),
        await sendForm(browser, '/sign-in', { email: address, password: 'a wrong password' }),
        await sendForm(browser, '/forgot-password', { email: address }),
      ];
      return sent.map(({ status, text, headers }) => [
        status,
        headers.get('location')?.replace(encodeURIComponent(address), 'ADDRESS'),
        text.replaceAll(address, 'ADDRESS').replaceAll(/name="form" value="[^"]*"/g, ''),
      ]);
    };
    expect(await answers(gateway.email)).toEqual(await answers(`grace.${gateway.email}`));
  });

  test('with a list of passwords is told to wait, and the owner is not locked out', async () => {
    const gateway = await start();
    const owner = gateway.browser();
    await signUp(gateway, owner, gateway.email);
    await signIn(owner, gateway.email);
    const thief = gateway.browser('198.51.100.1');
    const statuses: number[] = [];
    for (let index = 0; index < 7; index++)
      statuses.push(
        (await sendForm(thief, '/sign-in', { email: gateway.email, password: `guess number ${index}` }))
          .status,
      );
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    owner.cookies.delete(sessionCookie);
    expect((await sendForm(owner, '/sign-in', { email: gateway.email, password: goodPassword })).status).toBe(
      303,
    );
  });

  test('who plants a session does not share the one that is signed in to', async () => {
    const gateway = await start();
    const [victim, thief] = [gateway.browser(), gateway.browser('198.51.100.1')];
    await signUp(gateway, victim, gateway.email);
    await signInByWallet(thief);
    const planted = thief.cookies.get(sessionCookie) ?? '';
    await victim.get('/sign-out');
    victim.cookies.set(sessionCookie, planted);
    // a planted session is somebody's: the page shows whose, and the sign-in form is behind signing out
    expect((await victim.get('/sign-in')).status).toBe(303);
    await sendForm(victim, '/', {}, { action: '/sign-out' });
    expect(
      (await sendForm(victim, '/sign-in', { email: gateway.email, password: goodPassword })).status,
    ).toBe(303);
    expect(victim.cookies.get(sessionCookie)).not.toBe(planted);
    expect((await thief.get('/v1/credits')).status).toBe(401);
  });
});

test.each([
  '<img src=x onerror=alert(1)>',
  '"><script>alert(1)</script>',
  'evil\u202eniam\u2066x',
  '${7*7}{{7*7}}',
])('the name %j is a name and nothing else on the pages', async (name) => {
  const gateway = await start();
  const browser = gateway.browser();
  await browser.post('/api/auth/sign-up/email', { email: gateway.email, password: goodPassword, name });
  const [mail = ''] = await gateway.mails(gateway.email);
  await browser.get(/^https?:\S+$/m.exec(mail)?.[0] ?? '');
  await signIn(browser, gateway.email);
  const { text } = await browser.get('/');
  expect(text).toContain('<bdi class="name">');
  expect(text).not.toMatch(/<img src=x|<script>|[\u202a-\u202e\u2066-\u2069]|"name">49/);
});

test('a link cannot put words on a page', async () => {
  const gateway = await start();
  const { text } = await gateway
    .browser()
    .get('/sign-in?notice=Call+0900+666&error_description=Call+0900+666&email=%22%3E%3Cb%3E');
  expect(text).not.toContain('0900');
  expect(text).not.toContain('<b>');
});

test('over https every cookie has the prefix __Host- and is secure', async () => {
  const gateway = await startSite({
    top: 'public_url = "https://books.example"',
    bind: `127.0.0.1:${await freePort()}`,
  });
  const { headers } = await fetch(`${gateway.url}/sign-in`);
  const cookies = headers.getSetCookie();
  expect(cookies).toEqual([
    expect.stringMatching(/^__Host-tollbook\.visitor=[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
  ]);
});
