import { describe, expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import {
  goodPassword,
  linkIn,
  newWallet,
  signIn,
  signInByWallet,
  signUp,
  useIdentityGateway,
} from '../../support/identity.ts';
import { oidcSecret, startOidc } from '../../support/oidc.ts';
import { formsIn, openTab, postForm, sendForm, startSite } from '../../support/site.ts';

const chromium = useBrowser();
const start = useIdentityGateway(undefined, startSite);
const email = 'ada@example.org';
const newPassword = 'another good password';

describe.skipIf(!hasBrowser)('a person with a browser', () => {
  test('signs in with the wallet of the browser, which signs what the gateway wrote, and nothing else signs in', async () => {
    const gateway = await start();
    const { page, context, check } = await openTab(chromium, gateway);
    const account = newWallet();
    const asked: string[] = [];
    let isHonest = false;
    await context.exposeFunction('askWallet', async (method: string, params: string[] = []) => {
      asked.push(method);
      if (method === 'eth_requestAccounts') return [account.address.toLowerCase()];
      const message = Buffer.from((params[0] ?? '').slice(2), 'hex').toString('utf8');
      return account.signMessage({
        message: isHonest ? message : message.replace('Chain ID: 1', 'Chain ID: 10'),
      });
    });
    await context.addInitScript(
      'window.ethereum = { request: ({ method, params }) => askWallet(method, params) };',
    );
    await page.goto('/sign-in?next=/account');
    await check();
    await page.getByRole('button', { name: 'Continue with your wallet' }).click();
    await page.getByText('is not the message that this page showed').waitFor();
    isHonest = true;
    await page.goto('/sign-in?next=/account');
    await page.getByRole('button', { name: 'Continue with your wallet' }).click();
    await page.getByRole('heading', { name: 'Account' }).waitFor();
    await page.getByText(`${account.address.toLowerCase().slice(0, 8)}…`).waitFor();
    expect(asked).toEqual(['eth_requestAccounts', 'personal_sign', 'eth_requestAccounts', 'personal_sign']);
    await check();
  });

  test('signs in with a real OpenID provider, which stays while it is the only way', async () => {
    const port = await freePort();
    const people = { ada: { email, email_verified: true } };
    const oidc = await startOidc({ gatewayPort: port, people });
    const gateway = await startSite({
      bind: `127.0.0.1:${port}`,
      identity: oidc.table,
      env: { OIDC_SECRET: oidcSecret },
    });
    const { page, complaints } = await openTab(chromium, gateway);
    const consent = async (): Promise<void> => {
      await page.locator('input[name=login]').fill('ada');
      await page.locator('input[name=password]').fill('x');
      await page.locator('button[type=submit]').click();
      await page.getByRole('button', { name: 'Continue' }).click();
    };
    await page.goto('/sign-in?next=/account');
    await page.getByRole('button', { name: 'Continue with home' }).click();
    await consent();
    await page.getByRole('heading', { name: 'Account' }).waitFor();
    expect(await page.getByRole('listitem').filter({ hasText: 'home' }).count()).toBe(1);
    await page.getByRole('button', { name: 'Remove home' }).click();
    await page.getByText('This is your only password or provider').waitFor();
    expect(complaints.filter((text) => text.includes('gateway'))).toEqual([]);
  });
});

test('a name that does not fit on a line is refused, and what was typed stays', async () => {
  const gateway = await start();
  const browser = gateway.browser();
  await signInByWallet(browser);
  const account = { action: '/account/name' };
  expect((await sendForm(browser, '/account', { name: 'Ada' }, account)).status).toBe(303);
  expect((await browser.get('/account')).text).toContain('<bdi class="name">Ada</bdi>');
  const { status, text } = await sendForm(browser, '/account', { name: 'x'.repeat(101) }, account);
  expect(status).toBe(400);
  expect(text).toContain('1 to 100 characters');
  expect(text).toContain(`value="${'x'.repeat(101)}"`);
});

test('a changed password ends the other sessions and keeps this one', async () => {
  const gateway = await start();
  const [here, elsewhere] = [gateway.browser(), gateway.browser('198.51.100.1')];
  await signUp(gateway, here, gateway.email);
  await Promise.all([signIn(here, gateway.email), signIn(elsewhere, gateway.email)]);
  const change = (current: string) =>
    sendForm(here, '/account', { current, password: newPassword }, { action: '/account/password' });
  const wrong = await change('not the password');
  expect([wrong.status, wrong.text.includes('not the password')]).toEqual([400, false]);
  expect((await change(goodPassword)).headers.get('location')).toBe('/account?notice=password_changed');
  expect((await here.get('/account')).status).toBe(200);
  expect((await elsewhere.get('/account')).status).toBe(303);
});

test('sessions are listed with how they began, one can be ended alone, and all of them together', async () => {
  const gateway = await start();
  const browsers = [
    gateway.browser(),
    gateway.browser('203.0.113.2'),
    gateway.browser('203.0.113.3'),
  ] as const;
  const [here, second, third] = browsers;
  await signUp(gateway, here, gateway.email);
  for (const browser of browsers) await signIn(browser, gateway.email);
  const { text } = await here.get('/account');
  expect(text.match(/a password/g)).toHaveLength(3);
  const end = formsIn(text).filter(({ action }) => action === '/account/sessions/end');
  expect(end).toHaveLength(2);
  await postForm(here, '/account/sessions/end', end[0]?.fields ?? {});
  const open = await Promise.all([second.get('/account'), third.get('/account')]);
  expect(open.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(open.filter(({ status }) => status === 303)).toHaveLength(1);
  // the session of somebody else is not theirs to end
  const stranger = gateway.browser('198.51.100.1');
  await signInByWallet(stranger);
  const theirs = formsIn((await stranger.get('/account')).text)[0]?.fields['form'] ?? '';
  await postForm(stranger, '/account/sessions/end', {
    form: theirs,
    session: end[1]?.fields['session'] ?? '',
  });
  expect((await here.get('/account')).status).toBe(200);
  const all = await sendForm(here, '/account', {}, { action: '/account/sessions/end-all' });
  expect(all.headers.get('location')).toBe('/sign-in?notice=signed_out_everywhere');
  for (const browser of browsers) expect((await browser.get('/account')).status).toBe(303);
});

test('a page does not say that sessions were ended where they were not', async () => {
  const gateway = await start();
  const [here, elsewhere] = [gateway.browser(), gateway.browser('203.0.113.2')];
  const account = newWallet();
  await Promise.all([signInByWallet(here, account), signInByWallet(elsewhere, account)]);
  // somebody behind the same address uses up its writes
  const neighbour = gateway.browser();
  await Promise.all(Array.from({ length: 61 }, () => neighbour.post('/api/auth/sign-out')));
  for (const [page, action] of [
    ['/account', '/account/sessions/end-all'],
    ['/', '/sign-out'],
  ] as const) {
    const { status, headers, text } = await sendForm(here, page, {}, { action });
    expect([action, status, headers.has('retry-after')]).toEqual([action, 429, true]);
    expect(text).toContain('Too many attempts');
    expect((await here.get('/account')).status).toBe(200);
  }
  const renamed = await sendForm(here, '/account', { name: 'Ada' }, { action: '/account/name' });
  expect([renamed.status, renamed.text.includes('1 to 100 characters')]).toEqual([429, false]);
  expect((await elsewhere.get('/account')).status).toBe(200);
});

test('a forgotten password is set once by the link of a mail, which leads to a page', async () => {
  const gateway = await start();
  const browser = gateway.browser();
  await signUp(gateway, browser, gateway.email);
  expect(
    (await sendForm(browser, '/forgot-password', { email: gateway.email })).headers.get('location'),
  ).toBe('/forgot-password/sent');
  const mail =
    (await gateway.mails(gateway.email, 2)).find((text) => text.includes('Choose a new password')) ?? '';
  const page = (await browser.get(linkIn(mail))).headers.get('location') ?? '';
  expect(page).toMatch(/\/reset-password\?token=/);
  const own = page.replace(gateway.url, '');
  expect((await sendForm(browser, own, { password: 'short' })).text).toContain('at least 10 characters');
  expect((await sendForm(browser, own, { password: newPassword })).headers.get('location')).toBe(
    '/sign-in?notice=password_set',
  );
  expect((await sendForm(browser, own, { password: 'a third password' })).headers.get('location')).toBe(
    '/forgot-password?notice=link_expired',
  );
  expect(
    (await sendForm(browser, '/sign-in', { email: gateway.email, password: newPassword })).headers.get(
      'location',
    ),
  ).toBe('/');
});
