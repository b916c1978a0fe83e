import { describe, expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { type Browser, type IdentityGateway, signIn, signUp } from '../../support/identity.ts';
import { oidcSecret, type OidcServer, type People, startOidc } from '../../support/oidc.ts';
import { eventually } from '../../support/wait.ts';
import { formsIn, openTab, postForm, startSite, type Tab } from '../../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';
/** The button of the account page that takes the provider away. */
const removeHome = 'Remove<span class="unseen"> home</span>';
const people: People = {
  ada: { email, email_verified: true },
  eve: { email: 'eve@example.org', email_verified: true },
  unproven: { email, email_verified: false },
};

interface Together {
  readonly gateway: IdentityGateway;
  readonly oidc: OidcServer;
}

async function startBoth(options: Partial<Parameters<typeof startOidc>[0]> = {}): Promise<Together> {
  const gatewayPort = await freePort();
  const oidc = await startOidc({ gatewayPort, people, ...options });
  const gateway = await startSite({
    bind: `127.0.0.1:${gatewayPort}`,
    identity: oidc.table,
    env: { OIDC_SECRET: oidcSecret },
  });
  return { gateway, oidc };
}

/** Presses the button of a provider; returns where that leads. */
async function press(browser: Browser, page = '/sign-in', provider = 'home'): Promise<URL> {
  const [path = ''] = page.split('?', 1);
  const action = path === '/account' ? '/account/link' : '/sign-in/provider';
  const button = formsIn((await browser.get(page)).text).find((form) => form.action === action);
  const { headers } = await postForm(browser, action, { ...button?.fields, provider });
  return new URL(headers.get('location') ?? '');
}

/** Follows a provider's answer to the page that it ends at; returns what that page says. */
async function arrive(browser: Browser, callback: URL | string): Promise<{ path: string; text: string }> {
  const { origin } = new URL(callback);
  let { headers, text } = await browser.get(String(callback));
  let path = String(callback);
  for (let location = headers.get('location'); location !== null; location = headers.get('location')) {
    path = location.replace(origin, '');
    ({ headers, text } = await browser.get(path));
  }
  return { path, text };
}

async function isSignedIn(browser: Browser): Promise<boolean> {
  return (await browser.get('/account')).status === 200;
}

async function consent({ page }: Tab, login: string): Promise<void> {
  await page.locator('input[name=login]').fill(login);
  await page.locator('input[name=password]').fill('x');
  await page.locator('button[type=submit]').click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

describe.skipIf(!hasBrowser)('the button of a provider', () => {
  test('works on a page that was made while the provider was unreachable', async () => {
    const { gateway, oidc } = await startBoth({ listens: false });
    const tab = await openTab(chromium, gateway);
    await tab.page.goto('/sign-in?next=/account');
    const button = tab.page.getByRole('button', { name: 'Continue with home' });
    await button.click();
    await tab.page.getByText('This provider cannot be reached now').waitFor();
    await oidc.start();
    await eventually(async () => {
      await Promise.all([tab.page.waitForEvent('framenavigated'), button.click()]);
      expect(new URL(tab.page.url()).origin).toBe(oidc.issuer);
    });
    await consent(tab, 'ada');
    await tab.page.getByRole('heading', { name: 'Account' }).waitFor();
  });

  test('leads also to a provider that signs people in at another origin than its issuer', async () => {
    const { gateway } = await startBoth({
      tamper(path, body) {
        if (!path.startsWith('/.well-known/')) return;
        body['authorization_endpoint'] = String(body['authorization_endpoint']).replace(
          '127.0.0.1',
          'localhost',
        );
      },
    });
    const tab = await openTab(chromium, gateway);
    await tab.page.goto('/sign-in?next=/account');
    await tab.page.getByRole('button', { name: 'Continue with home' }).click();
    await consent(tab, 'ada');
    await tab.page.getByRole('heading', { name: 'Account' }).waitFor();
    expect(tab.complaints.filter((text) => text.includes('Content Security Policy'))).toEqual([]);
  });
});

test('the button of a provider names it as people do where it is well known, else as the operator does', async () => {
  const providers = ['google', 'gitlab', 'home'].map(
    (name) => `[[identity.providers]]
name = "${name}"
issuer = "https://${name}.example"
client_id = "tollbook"
client_secret = "env:OIDC_SECRET"`,
  );
  const gateway = await startSite({ identity: providers.join('\n'), env: { OIDC_SECRET: oidcSecret } });
  const text = await (await fetch(`${gateway.url}/sign-in`)).text();
  expect([...text.matchAll(/Continue with (?!your wallet)(\S+)/g)].map(([, name]) => name)).toEqual([
    'Google',
    'GitLab',
    'home',
  ]);
});

describe('a provider’s answer', () => {
  test.each([
    ['that belongs to no sign-in', (url: URL) => url.searchParams.set('state', 'x'.repeat(32))],
    [
      'that is an error',
      (url: URL) => {
        url.searchParams.delete('code');
        url.searchParams.set('error', 'access_denied');
        url.searchParams.set('error_description', 'Call 0900 666');
      },
    ],
  ])('%s signs no user in, and the page of the sign-in says so', async (_, edit) => {
    const { gateway, oidc } = await startBoth();
    const browser = gateway.browser();
    const callback = new URL(await oidc.signIn((await press(browser)).href, 'ada'));
    edit(callback);
    const { path, text } = await arrive(browser, callback);
    expect(path).toBe('/sign-in?notice=provider_refused');
    expect(text).toContain('The sign-in with that provider did not succeed');
    expect(text).not.toContain('0900');
    expect(await isSignedIn(browser)).toBe(false);
  });

  test.each([
    ['nonce', (url: URL) => url.searchParams.set('nonce', 'x'.repeat(43))],
    ['challenge', (url: URL) => url.searchParams.set('code_challenge', 'x'.repeat(43))],
    ['challenge left out', (url: URL) => url.searchParams.delete('code_challenge')],
  ])('to a request whose %s was changed on its way signs no user in', async (_, edit) => {
    const { gateway, oidc } = await startBoth();
    const browser = gateway.browser();
    const request = await press(browser);
    edit(request);
    const { path } = await arrive(browser, await oidc.signIn(request.href, 'ada'));
    expect(path).toBe('/sign-in?notice=provider_refused');
    expect(await isSignedIn(browser)).toBe(false);
  });

  test('that is sent to the callback of another provider signs no user in, and the other one does not get the code', async () => {
    const gatewayPort = await freePort();
    const codes: string[] = [];
    const home = await startOidc({ gatewayPort, people });
    const away = await startOidc({
      gatewayPort,
      people,
      name: 'away',
      tamper: (path) => void (path === '/token' && codes.push(path)),
    });
    const gateway = await startSite({
      bind: `127.0.0.1:${gatewayPort}`,
      identity: home.table + away.table,
      env: { OIDC_SECRET: oidcSecret },
    });
    const browser = gateway.browser();
    const callback = new URL(await home.signIn((await press(browser)).href, 'ada'));
    callback.pathname = '/api/auth/callback/away';
    callback.searchParams.delete('iss');
    expect((await arrive(browser, callback)).path).toBe('/sign-in?notice=provider_refused');
    expect(await isSignedIn(browser)).toBe(false);
    expect(codes).toEqual([]);
  });

  test('with an address of a user that the provider has not verified takes nothing over', async () => {
    const { gateway, oidc } = await startBoth();
    const [owner, thief] = [gateway.browser(), gateway.browser('198.51.100.1')];
    await signUp(gateway, owner, email);
    const callback = await oidc.signIn((await press(thief)).href, 'unproven');
    const { path, text } = await arrive(thief, callback);
    expect([path, text.includes('Sign in to it, then add the provider')]).toEqual([
      '/sign-in?notice=account_not_linked',
      true,
    ]);
    expect(await isSignedIn(thief)).toBe(false);
    await signIn(owner, email);
    expect((await owner.get('/account')).text).not.toContain(removeHome);
  });

  test('that names somebody else’s account adds that account to no user', async () => {
    const { gateway, oidc } = await startBoth();
    const [owner, thief] = [gateway.browser(), gateway.browser('198.51.100.1')];
    await arrive(owner, await oidc.signIn((await press(owner)).href, 'ada'));
    await signUp(gateway, thief, 'grace@example.org');
    await signIn(thief, 'grace@example.org');
    for (const login of ['ada', 'eve']) {
      const { path, text } = await arrive(
        thief,
        await oidc.signIn((await press(thief, '/account')).href, login),
      );
      expect([login, path]).toEqual([login, '/account?notice=provider_not_linked']);
      expect(text).toContain('belongs to another user, or has another e-mail address');
      expect(text).not.toContain(removeHome);
    }
  });

  test('with a hostile name makes a user with a short name on one line, and the pages show it as text', async () => {
    const name = `<img src=x onerror=alert(1)>\u202e\u0000\r\nBcc: x ${'y'.repeat(5_000)}`;
    const { gateway, oidc } = await startBoth({ people: { ada: { email, email_verified: true, name } } });
    const browser = gateway.browser();
    await arrive(browser, await oidc.signIn((await press(browser)).href, 'ada'));
    const { text } = await browser.get('/account');
    expect(text).toContain('<bdi class="name">&#60;img src=x onerror=alert(1)&#62;');
    expect(text).not.toMatch(/<img src=x|\u202e/);
    const { json } = await browser.get('/api/auth/get-session');
    expect(json.user.name).toMatch(/^\P{C}{1,100}$/u);
  });
});
