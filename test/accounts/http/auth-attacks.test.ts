import { describe, expect, test } from 'vitest';
import { signedValue } from '../../../src/accounts/use-cases/signed-values.ts';
import {
  allMails,
  type Answer,
  goodPassword,
  identitySecret,
  linkIn,
  signIn,
  signInByWallet,
  signUp,
  startIdentityGateway,
  useIdentityGateway,
  sessionCookie,
  userId,
} from '../../support/identity.ts';

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

const start = useIdentityGateway();

test('a body of more levels than anyone sends is malformed on every route that reads JSON', async () => {
  const gateway = await start();
  const browser = gateway.browser();
  await signInByWallet(browser);
  for (const depth of [1_000, 15_000])
    for (const path of ['/api/auth/sign-in/email', '/api/auth/update-user', '/api/keys', '/api/siwe/nonce'])
      for (const body of [nested(depth), `{"name":${nested(depth)},"email":"a@example.org"}`]) {
        const answer = await browser.post(path, body, { 'content-type': 'application/json' });
        expect([path, answer.status, answer.json?.code]).toEqual([path, 400, 'invalid_request']);
      }
});

describe('a page of another origin', () => {
  const writes: readonly [string, string][] = [
    ['POST', '/api/auth/sign-in/email'],
    ['POST', '/api/auth/sign-up/email'],
    ['POST', '/api/auth/sign-out'],
    ['POST', '/api/auth/revoke-sessions'],
    ['POST', '/api/auth/sign-in/social'],
    ['POST', '/api/auth/request-password-reset'],
    ['POST', '/api/auth/reset-password'],
    ['POST', '/api/auth/change-password'],
    ['POST', '/api/auth/update-user'],
    ['POST', '/api/siwe/nonce'],
    ['POST', '/api/siwe/verify'],
    ['POST', '/api/keys'],
    ['DELETE', '/api/keys/1'],
    ['DELETE', '/api/keys'],
  ];

  test.each(writes)('may not %s %s', async (method, path) => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: gateway.url.replace('127.0.0.1', 'localhost') },
      { origin: `${gateway.url}.evil.example` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const answer = await browser.request(method, path, {}, headers);
      expect(answer).toMatchObject({ status: 403, json: { code: 'wrong_origin' } });
    }
    expect(await userId(browser)).toEqual(expect.any(String));
  });

  test("may not request completions with a visitor's cookie", async () => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const body = { model: 'devnet-small', messages: [{ role: 'user', content: 'hi' }] };
    const foreign = await browser.post('/v1/chat/completions', body, { origin: 'https://evil.example' });
    expect(foreign.status).toBe(401);
    expect((await browser.post('/v1/chat/completions', body)).status).toBe(200);
  });

  test.each(['/api/auth/get-session', '/api/keys'])('may not read %s', async (path) => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const answer = await browser.get(path, { origin: 'https://evil.example' });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });
});

test('a page of an origin that the operator trusts acts by its visitor’s cookie, and no other page does', async () => {
  const trusted = 'https://app.example';
  const gateway = await startIdentityGateway({ identity: `trusted_origins = ["${trusted}"]` });
  const browser = gateway.browser();
  await signInByWallet(browser);
  const body = { model: 'devnet-small', messages: [{ role: 'user', content: 'hi' }] };
  const from = { origin: trusted, 'sec-fetch-site': 'same-site' };
  const made = await browser.post('/v1/chat/completions', body, from);
  expect([made.status, made.headers.get('x-ratelimit-limit')]).toEqual([200, '30']);
  const key = await browser.post('/api/keys', { name: 'of the page' }, from);
  expect(key.status).toBe(201);
  const asking = {
    ...from,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-stainless-os',
  };
  for (const answer of [
    made,
    key,
    await browser.request('OPTIONS', '/v1/chat/completions', undefined, asking),
  ]) {
    expect(answer.headers.get('access-control-allow-origin')).toBe(trusted);
    expect(answer.headers.get('access-control-allow-credentials')).toBe('true');
    expect(answer.headers.get('vary')).toContain('Origin');
  }
  const evil = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
  const foreign = await browser.post('/v1/chat/completions', body, evil);
  expect([foreign.status, foreign.headers.get('access-control-allow-credentials')]).toEqual([401, null]);
  expect((await browser.post('/api/keys', { name: 'x' }, evil)).status).toBe(403);
});

describe('no sign-in redirects to another origin', () => {
  const elsewhere = [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    'https:evil.example',
    'javascript:alert(1)',
    '/%2f%2fevil.example',
    '\t//evil.example',
    'http://127.0.0.1@evil.example/',
  ];

  test.each(elsewhere)('to %s', async (url) => {
    const gateway = await start();
    const browser = gateway.browser();
    const body = { email: gateway.email, password: goodPassword, name: 'Ada' };
    const query = new URLSearchParams({ callbackURL: url, token: 'x' });
    const answers = [
      await browser.post('/api/auth/sign-up/email', { ...body, callbackURL: url }),
      await browser.post('/api/auth/sign-in/email', { ...body, callbackURL: url }),
      await browser.post('/api/auth/request-password-reset', { email: gateway.email, redirectTo: url }),
      await browser.post('/api/auth/sign-out', { callbackURL: url }),
      await browser.get(`/api/auth/verify-email?${query.toString()}`),
      await browser.get(`/api/auth/reset-password/xxxxxxxxxxxxxxxxxxxxxxxx?${query.toString()}`),
    ];
    for (const { headers, text } of answers) {
      const location = headers.get('location') ?? '/';
      expect(new URL(location, gateway.url).origin).toBe(gateway.url);
      expect(text).not.toContain('"url":"http');
    }
    const mails = (await allMails(gateway.mailDir)).filter((mail) => mail.includes(gateway.email));
    expect(mails.join('\n')).not.toMatch(/callbackURL=[^&\s]*evil/);
  });
});

describe('a callback path that resolves to another origin is refused', () => {
  test.each(['/..//evil.example', '/.//evil.example', '/x/..//evil.example'])('%s', async (callbackURL) => {
    const gateway = await start();
    const browser = gateway.browser();
    await browser.post('/api/auth/sign-up/email', {
      email: gateway.email,
      password: goodPassword,
      name: 'Ada',
      callbackURL,
    });
    const [mail = ''] = await gateway.mails(gateway.email);
    const query = new URLSearchParams({ callbackURL, token: 'x' });
    const links = [linkIn(mail), `/api/auth/verify-email?${query.toString()}`];
    for (const link of links) {
      const location = (await browser.get(link)).headers.get('location') ?? 'none';
      expect(new URL(location, gateway.url).origin).toBe(gateway.url);
    }
    expect((await signIn(browser, gateway.email)).status).toBe(200);
  });
});

const shapeOf = ({ status, json, headers }: Answer) => [
  status,
  Object.keys(json.user).toSorted(),
  json.token,
  headers.getSetCookie(),
];

describe('whether an address has an account', () => {
  test('is revealed neither by the answer to a sign-up nor by its timing', async () => {
    const gateway = await start();
    await signUp(gateway, gateway.browser(), gateway.email);
    const ask = async (as: string): Promise<Answer> => {
      const startedMs = performance.now();
      const answer = await gateway
        .browser('203.0.113.9')
        .post('/api/auth/sign-up/email', { email: as, password: goodPassword, name: 'Eve' });
      expect(performance.now() - startedMs).toBeGreaterThan(240);
      return answer;
    };
    const [known, unknown] = [await ask(gateway.email), await ask(`eve.${gateway.email}`)];
    expect(shapeOf(known)).toEqual(shapeOf(unknown));
    expect((await gateway.mails(gateway.email, 2))[1]).toContain('You have an account already');
  });

  test.each([
    ['a sign-in', '/api/auth/sign-in/email', { password: 'a wrong password' }],
    ['a request for a new password', '/api/auth/request-password-reset', {}],
    ['a request for another verification link', '/api/auth/send-verification-email', {}],
  ])('is revealed neither by the answer to %s nor by its timing', async (_, path, more) => {
    const gateway = await start();
    await signUp(gateway, gateway.browser(), gateway.email);
    const ask = async (as: string) => {
      const startedMs = performance.now();
      const { status, text } = await gateway.browser('203.0.113.9').post(path, { email: as, ...more });
      return { status, text, ms: performance.now() - startedMs };
    };
    const [known, unknown] = [await ask(gateway.email), await ask(`eve.${gateway.email}`)];
    expect([known.status, known.text]).toEqual([unknown.status, unknown.text]);
    for (const { ms } of [known, unknown]) expect(ms).toBeGreaterThan(240);
  });
});

test('wrong cookies of one client are limited to twenty a minute', async () => {
  const gateway = await start();
  const statuses: number[] = [];
  for (let at = 0; at < 22; at++) {
    const browser = gateway.browser();
    browser.cookies.set(sessionCookie, signedValue([identitySecret], `guess${at}`));
    statuses.push((await browser.get('/v1/models')).status);
  }
  expect(statuses).toEqual([...Array.from({ length: 20 }, () => 401), 429, 429]);
  expect((await gateway.browser('203.0.113.2').get('/v1/models')).status).toBe(200);
});

test('a page of another origin cannot use up the wrong cookies of its visitor', async () => {
  const gateway = await start();
  const visitor = gateway.browser();
  visitor.cookies.set(sessionCookie, signedValue([identitySecret], 'ended'));
  const body = { model: 'devnet-small', messages: [{ role: 'user', content: 'hi' }] };
  const statuses: number[] = [];
  for (let at = 0; at < 22; at++)
    statuses.push(
      (await visitor.post('/v1/chat/completions', body, { origin: 'https://evil.example' })).status,
    );
  expect(new Set(statuses)).toEqual(new Set([401]));
  expect((await visitor.get('/v1/models')).status).toBe(401);
});

test('a name is short and on one line, and a picture is refused', async () => {
  const gateway = await start();
  const browser = gateway.browser();
  await signUp(gateway, browser, gateway.email);
  await signIn(browser, gateway.email);
  const wrongProfiles = [{ name: 'x'.repeat(101) }, { name: 'a\nb' }, { image: 'javascript:alert(1)' }];
  for (const profile of wrongProfiles) {
    const signUpBody = { email: `eve.${gateway.email}`, password: goodPassword, name: 'Eve', ...profile };
    expect((await gateway.browser().post('/api/auth/sign-up/email', signUpBody)).status).toBe(400);
    expect((await browser.post('/api/auth/update-user', profile)).status).toBe(400);
  }
  expect((await browser.post('/api/auth/update-user', { name: 'Ada L.' })).status).toBe(200);
});

test('the error page runs no script from its parameters', async () => {
  const gateway = await start();
  const query = new URLSearchParams({
    error: '<script>alert(1)</script>',
    error_description: '<img src=x onerror=alert(1)>',
  });
  const { text, headers } = await gateway.browser().get(`/api/auth/error?${query.toString()}`);
  expect(text).not.toContain('<script>alert');
  expect(text).not.toContain('<img src=x');
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
});

test('a gateway without user accounts serves no path of theirs', async () => {
  const { startChatGateway } = await import('../../support/chat-gateway.ts');
  const gateway = await startChatGateway();
  for (const path of ['/api/auth/get-session', '/api/siwe/nonce', '/api/keys'])
    expect((await fetch(gateway.url + path)).status).toBe(404);
  const cookie = 'tollbook.session_token=whatever';
  expect((await fetch(`${gateway.url}/v1/models`, { headers: { cookie } })).status).toBe(200);
});
