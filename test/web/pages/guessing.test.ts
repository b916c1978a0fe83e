import { describe, expect, test } from 'vitest';
import { goodPassword, signUp } from '../../support/identity.ts';
import { postForm, sendForm, startSite } from '../../support/site.ts';

const email = 'ada@example.org';
const sessionCookie = 'tollbook.session_token';

describe('a stranger with a list of stolen passwords', () => {
  test('gets no more attempts by another spelling of the address, or by two addresses in one form', async () => {
    const gateway = await startSite();
    const thief = gateway.browser('198.51.100.1');
    const { text } = await thief.get('/sign-in');
    const form = /name="form" value="([^"]+)"/.exec(text)?.[1] ?? '';
    const spellings = [
      email,
      'ADA@example.org',
      ` ${email} `,
      'Ada@Example.Org',
      `${email}&email=eve@example.org`,
    ];
    const statuses: number[] = [];
    for (const spelling of [...spellings, ...spellings]) {
      const [first = '', ...more] = spelling.split('&');
      const body = new URLSearchParams({ form, email: first, password: 'a guess' }).toString();
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      statuses.push((await thief.post('/sign-in', [body, ...more].join('&'), type)).status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429, 429, 429]);
  });
});

describe('whether an address has an account', () => {
  const forms = {
    '/sign-in': { password: 'a wrong password' },
    '/sign-up': { name: 'x', password: 'another good password' },
    '/sign-up/sent': {},
    '/forgot-password': {},
  } as const;

  test.each(Object.entries(forms))(
    'is revealed by the form at %s neither in words nor in time, confirmed or not',
    async (page, typed) => {
      const gateway = await startSite();
      await signUp(gateway, gateway.browser(), email);
      const waiting = 'grace@example.org';
      await sendForm(gateway.browser(), '/sign-up', { email: waiting, name: 'x', password: goodPassword });
      await gateway.mails(waiting);
      const action = page === '/sign-up/sent' ? '/sign-up/again' : page;
      const ask = async (address: string, from: string) => {
        const browser = gateway.browser(from);
        const { text: shown } = await browser.get(page);
        const form = /name="form" value="([^"]+)"/.exec(shown)?.[1] ?? '';
        const startedMs = performance.now();
        const { status, text, headers } = await postForm(browser, action, { form, email: address, ...typed });
        // every answer is held back to a multiple of 250 ms
        expect(performance.now() - startedMs).toBeGreaterThan(240);
        const hidden = (words: string): string =>
          words
            .replaceAll(encodeURIComponent(address), 'ADDRESS')
            .replaceAll(address, 'ADDRESS')
            .replaceAll(/name="form" value="[^"]*"/g, '');
        return [status, hidden(text), hidden(headers.get('location') ?? '')];
      };
      const known = await ask(email, '198.51.100.1');
      expect(await ask('eve@example.org', '198.51.100.2')).toEqual(known);
      expect(await ask(waiting, '198.51.100.3')).toEqual(known);
    },
  );

  test('is shown only to users who know its password: it waits for its confirmation', async () => {
    const gateway = await startSite();
    await sendForm(gateway.browser(), '/sign-up', { email, name: 'x', password: goodPassword });
    await gateway.mails(email);
    const browser = gateway.browser('198.51.100.1');
    const { headers } = await sendForm(browser, '/sign-in', { email, password: goodPassword });
    expect(headers.get('location')).toContain('/sign-up/sent?');
    expect(browser.cookies.has(sessionCookie)).toBe(false);
  });
});
