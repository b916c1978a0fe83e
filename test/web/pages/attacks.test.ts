import { expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { goodPassword, signUp, useIdentityGateway } from '../../support/identity.ts';
import { sendForm, startSite } from '../../support/site.ts';

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

/** What else is no path of its own site is in own-path.test.ts. */
test('after a sign-in nobody is led to another site', async () => {
  const next = '//other.example';
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
