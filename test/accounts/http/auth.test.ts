import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { pruneSessions } from '../../../src/accounts/use-cases/sessions.ts';
import { signedValue } from '../../../src/accounts/use-cases/signed-values.ts';
import { endSessions } from '../../../src/accounts/store/identity.ts';
import { laneOn } from '../../support/credit.ts';
import {
  allMails,
  type Answer,
  type Browser,
  goodPassword,
  type IdentityGateway,
  type SharedIdentityGateway,
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
import { allEvents } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';

const email = 'ada@example.org';

const start = useIdentityGateway();

function resetToken(mail: string): string {
  return /^[A-Za-z0-9]{24}$/m.exec(mail)?.[0] ?? '';
}

async function resetMail(gateway: IdentityGateway, browser: Browser, to: string): Promise<string> {
  const before = (await allMails(gateway.mailDir)).filter((mail) => mail.startsWith(`To: ${to}\n`)).length;
  expect(await browser.post('/api/auth/request-password-reset', { email: to })).toMatchObject({
    status: 200,
  });
  return (await gateway.mails(to, before + 1)).find((mail) => mail.includes('Choose a new password')) ?? '';
}

/** Everything of people that the database holds, as text. */
async function dumpIdentity({ database }: IdentityGateway): Promise<string> {
  return database.asOwner(async (owner) => {
    const tables = ['"user"', 'session', 'credential', 'verification', 'wallet', 'siwe_nonce'];
    const dumps: string[] = [];
    for (const table of tables) {
      const { rows } = await owner.query<{ all: string }>(
        `select coalesce(json_agg(t)::text, '') as all from identity.${table} t`,
      );
      dumps.push(rows[0]?.all ?? '');
    }
    return dumps.join('\n');
  });
}

describe('an email address and a password', () => {
  test('sign their owner in once the link in the mail was opened, and not before', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    const body = { email: gateway.email, password: goodPassword, name: 'Ada' };
    expect(await browser.post('/api/auth/sign-up/email', body)).toMatchObject({ status: 200 });
    expect(browser.cookies.size).toBe(0);
    expect(await signIn(browser, gateway.email)).toMatchObject({ status: 403 });
    const [mail = ''] = await gateway.mails(gateway.email);
    expect((await browser.get(linkIn(mail))).status).toBe(302);
    expect(browser.cookies.size).toBe(0);
    expect(await signIn(browser, gateway.email)).toMatchObject({ status: 200 });
    expect(await userId(browser)).toEqual(expect.any(String));
    const events = (await gateway.newEvents()).map(({ type }) => type);
    // a sign-up alone leaves no event, and a sign-in none of the account, which has no credit
    expect(events).toEqual(['sign_in_refused', 'session_started']);
  });

  test('leave no address in the ledger or the log', async () => {
    const log = logLines();
    const gateway = await startIdentityGateway({ logger: log.logger });
    const browser = gateway.browser();
    await signUp(gateway, browser, email);
    await signIn(browser, email, 'another password');
    await signIn(browser, email);
    const token = resetToken(await resetMail(gateway, browser, email));
    for (const more of ['?callbackURL=/', '/', '%3E', ')'])
      await browser.get(`/api/auth/reset-password/${token}${more}`);
    const recorded = JSON.stringify([await allEvents(gateway.database.db), log.lines]);
    expect(recorded).not.toContain(email);
    for (const secret of [goodPassword, token]) expect(recorded).not.toContain(secret);
    expect(recorded).toContain('reset-password');
    expect(JSON.stringify(await allEvents(gateway.database.db))).not.toContain('203.0.113.1');
  });

  test('cannot be used when the gateway sends no mail', async () => {
    const gateway = await startIdentityGateway({ mails: false });
    const body = { email, password: goodPassword, name: 'Ada' };
    const answers = [
      await gateway.browser().post('/api/auth/sign-up/email', body),
      await signIn(gateway.browser(), email),
    ];
    for (const answer of answers) expect(answer.status).toBe(400);
    expect(await dumpIdentity(gateway)).not.toContain(email);
  });

  test('are reset once by the token of a mail, which ends every session', async () => {
    const gateway = await start();
    const [first, second] = [gateway.browser(), gateway.browser('203.0.113.2')];
    await signUp(gateway, first, gateway.email);
    await signIn(first, gateway.email);
    const token = resetToken(await resetMail(gateway, second, gateway.email));
    const reset = (newPassword: string): Promise<Answer> =>
      second.post('/api/auth/reset-password', { token, newPassword });
    expect((await reset('short')).status).toBe(400);
    expect((await reset('another good password')).status).toBe(200);
    expect((await reset('a third good password')).status).toBe(400);
    expect(await userId(first)).toBeUndefined();
    expect((await signIn(second, gateway.email)).status).toBe(401);
    expect((await signIn(second, gateway.email, 'another good password')).status).toBe(200);
  });

  test('changed by their owner end every other session, and a mail offers to revoke the keys that remain', async () => {
    const gateway = await start();
    const [owner, thief] = [gateway.browser(), gateway.browser('198.51.100.1')];
    await signUp(gateway, owner, gateway.email);
    await Promise.all([signIn(owner, gateway.email), signIn(thief, gateway.email)]);
    for (const name of ['one', 'two']) await thief.post('/api/keys', { name });
    const change = { currentPassword: goodPassword, newPassword: 'another good password' };
    const wrong = { ...change, currentPassword: 'a wrong password' };
    expect((await owner.post('/api/auth/change-password', wrong)).status).toBe(400);
    expect(await userId(thief)).toEqual(expect.any(String));
    const keptOn = { ...change, revokeOtherSessions: false };
    expect((await owner.post('/api/auth/change-password', keptOn)).status).toBe(200);
    expect(await userId(thief)).toBeUndefined();
    expect((await thief.get('/v1/credits')).status).toBe(401);
    expect(await userId(owner)).toEqual(expect.any(String));
    const mail = (await gateway.mails(gateway.email, 2)).find((text) =>
      text.includes('Your password was changed'),
    );
    expect(mail).toContain('Your 2 API keys are still valid');
    expect(mail).toContain(`DELETE ${gateway.url}/api/keys`);
    expect(await owner.request('DELETE', '/api/keys')).toMatchObject({ status: 200, json: { revoked: 2 } });
    const { keys } = (await owner.get('/api/keys')).json as { keys: { revoked_at: string | null }[] };
    expect(keys.map(({ revoked_at: at }) => at)).not.toContain(null);
  });

  test('of an address that a stranger signed up with become its owner’s, who reads its mail', async () => {
    const gateway = await start();
    const [stranger, owner] = [gateway.browser('198.51.100.1'), gateway.browser()];
    await stranger.post('/api/auth/sign-up/email', {
      email: gateway.email,
      password: 'the stranger’s own',
      name: 'x',
    });
    await gateway.mails(gateway.email);
    const token = resetToken(await resetMail(gateway, owner, gateway.email));
    await owner.post('/api/auth/reset-password', { token, newPassword: goodPassword });
    expect((await signIn(owner, gateway.email)).status).toBe(200);
    expect((await signIn(stranger, gateway.email, 'the stranger’s own')).status).toBe(401);
  });

  test('an edited or unsigned link verifies nothing', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    await browser.post('/api/auth/sign-up/email', {
      email: gateway.email,
      password: goodPassword,
      name: 'Ada',
    });
    const link = new URL(linkIn((await gateway.mails(gateway.email))[0] ?? ''));
    const [head, payload, signature = ''] = (link.searchParams.get('token') ?? '').split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    for (const token of [
      `${head}.${payload}.${'A'.repeat(signature.length)}`,
      `${none}.${payload}.`,
      `${head}.${payload}`,
    ]) {
      link.searchParams.set('token', token);
      await browser.get(link.href);
    }
    expect((await signIn(browser, gateway.email)).status).toBe(403);
  });
});

describe('a leak of the database', () => {
  test('contains no token of a session, a link or a callback, and no password', async () => {
    const gateway = await startIdentityGateway();
    const browser = gateway.browser();
    await signUp(gateway, browser, email);
    await signIn(browser, email);
    const reset = resetToken(await resetMail(gateway, browser, email));
    const dump = await dumpIdentity(gateway);
    const [token = ''] = decodeURIComponent(browser.cookies.get(sessionCookie) ?? '').split('.');
    expect(token.length).toBeGreaterThanOrEqual(32);
    expect(reset).toHaveLength(24);
    expect(dump).toContain(createHash('sha256').update(token).digest('base64url'));
    for (const secret of [token, reset, goodPassword]) expect(dump).not.toContain(secret);
  });

  test('opens no session, even with the secret that signs cookies', async () => {
    const gateway = await startIdentityGateway();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const { rows } = await gateway.database.pool.query<{ id: string; token: string }>(
      'select id, token from identity.session',
    );
    const { id = '', token = '' } = rows[0] ?? {};
    for (const text of [token, id, `session:${id}`]) {
      const thief = gateway.browser();
      thief.cookies.set(sessionCookie, signedValue([identitySecret], text));
      expect(await userId(thief)).toBeUndefined();
      expect((await thief.get('/v1/credits')).status).toBe(401);
    }
  });
});

describe('a session', () => {
  test('ends for all browsers of its user, in every process, immediately', async () => {
    const gateway = await startIdentityGateway();
    const other = await startIdentityGateway({ database: gateway.database });
    const [first, second] = [gateway.browser(), gateway.browser()];
    await signUp(gateway, first, email);
    await Promise.all([signIn(first, email), signIn(second, email)]);
    const elsewhere = other.browser();
    for (const [name, value] of second.cookies) elsewhere.cookies.set(name, value);
    expect((await elsewhere.get('/v1/credits')).status).toBe(200);
    expect((await first.post('/api/auth/revoke-sessions')).status).toBe(200);
    expect((await elsewhere.get('/v1/credits')).status).toBe(401);
    for (const browser of [first, second]) expect(await userId(browser)).toBeUndefined();
    const ended = (await allEvents(gateway.database.db)).filter(({ type }) => type === 'session_ended');
    expect(ended.map(({ data }) => data)).toEqual([
      expect.objectContaining({ reason: 'ended' }),
      expect.objectContaining({ reason: 'ended' }),
    ]);
  });

  test('ends when its owner signs out, and its old cookie is invalid', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const kept = browser.cookies.get(sessionCookie) ?? '';
    expect((await browser.post('/api/auth/sign-out')).status).toBe(200);
    expect(browser.cookies.has(sessionCookie)).toBe(false);
    browser.cookies.set(sessionCookie, kept);
    expect((await browser.get('/v1/credits')).status).toBe(401);
  });

  test('expires by the database’s clock', async () => {
    const gateway = await startIdentityGateway({ constants: { identity: { sessionDays: 1 } } });
    const browser = gateway.browser();
    await signInByWallet(browser);
    await gateway.database.moveClock(86_399 - 60);
    expect((await browser.get('/v1/credits')).status).toBe(200);
    await gateway.database.moveClock(86_401);
    expect((await browser.get('/v1/credits')).status).toBe(401);
  });

  test.each([
    ['edited in its token', (value: string) => `${value.startsWith('x') ? 'y' : 'x'}${value.slice(1)}`],
    [
      'edited in its signature',
      (value: string) => value.replace(/\.(.)/, (_, first) => `.${first === 'A' ? 'B' : 'A'}`),
    ],
    ['without its signature', (value: string) => value.split('.')[0] ?? ''],
    [
      'signed with another secret',
      (value: string) => signedValue(['another secret'], value.split('.')[0] ?? ''),
    ],
    ['malformed', () => '%E0%A4%A'],
  ])('whose cookie is %s is invalid, and its request is not anonymous either', async (_, edit) => {
    const gateway = await start();
    const browser = gateway.browser();
    await signInByWallet(browser);
    browser.cookies.set(sessionCookie, edit(browser.cookies.get(sessionCookie) ?? ''));
    const answer = await browser.get('/v1/credits');
    expect(answer).toMatchObject({ status: 401, json: { error: { code: 'invalid_api_key' } } });
    expect(await userId(browser)).toBeUndefined();
  });

  test('is new at each sign-in, whatever cookie was sent', async () => {
    const gateway = await start();
    const [thief, victim] = [gateway.browser('198.51.100.1'), gateway.browser()];
    const { json: mine } = await signInByWallet(thief);
    const planted = thief.cookies.get(sessionCookie) ?? '';
    victim.cookies.set(sessionCookie, planted);
    const { json: theirs } = await signInByWallet(victim);
    expect(victim.cookies.get(sessionCookie)).not.toBe(planted);
    expect(await userId(victim)).toBe(theirs.user.id);
    expect(mine.user.id).not.toBe(theirs.user.id);
    expect(await userId(thief)).toBeUndefined();
  });

  test.each<[string, (gateway: SharedIdentityGateway, browser: Browser) => Promise<unknown>]>([
    ['a wallet', (_, browser) => signInByWallet(browser)],
    ['a password', ({ email: own }, browser) => signIn(browser, own)],
  ])(
    'ends when its browser signs in again with %s, and the sessions of other browsers continue',
    async (_, again) => {
      const gateway = await start();
      const [browser, old, other] = [gateway.browser(), gateway.browser(), gateway.browser()];
      await signUp(gateway, browser, gateway.email);
      for (const one of [browser, other]) await signIn(one, gateway.email);
      old.cookies.set(sessionCookie, browser.cookies.get(sessionCookie) ?? '');
      await browser.post('/api/auth/update-user', { name: 'Grace' });
      const before = await userId(old);
      await again(gateway, browser);
      expect([before, await userId(old)]).toEqual([expect.any(String), undefined]);
      for (const one of [browser, other]) expect(await userId(one)).toEqual(expect.any(String));
    },
  );
});

const endings = async (gateway: IdentityGateway): Promise<unknown[]> =>
  (await allEvents(gateway.database.db))
    .filter(({ type }) => type === 'session_ended')
    .map(({ data }) => ('reason' in data ? data.reason : undefined));

describe('the end of a session', () => {
  test('by expiry is recorded once', async () => {
    const gateway = await startIdentityGateway();
    await signInByWallet(gateway.browser());
    await gateway.database.moveClock(8 * 86_400);
    const ledger = { pool: gateway.database.pool, lane: laneOn(gateway.database) };
    await Promise.all([pruneSessions(ledger, 10), pruneSessions(ledger, 10)]);
    expect(await pruneSessions(ledger, 10)).toBe(0);
    expect(await endings(gateway)).toEqual(['expired']);
  });

  test('is recorded by another process when the process that ended it stopped before', async () => {
    const gateway = await startIdentityGateway();
    await signInByWallet(gateway.browser());
    const { pool } = gateway.database;
    const { rows } = await pool.query<{ id: string }>('select id from identity.session');
    await endSessions(
      pool,
      rows.map(({ id }) => id),
    );
    expect(await endings(gateway)).toEqual([]);
    await pruneSessions({ pool, lane: laneOn(gateway.database) }, 10);
    expect(await endings(gateway)).toEqual(['ended']);
  });
});

describe('cookies', () => {
  test('over https are limited to this host, and hidden from scripts and other sites', async () => {
    const port = await freePort();
    const gateway = await startIdentityGateway({
      bind: `127.0.0.1:${port}`,
      top: 'public_url = "https://gateway.example"',
    });
    const browser = gateway.browser();
    const own = { origin: 'https://gateway.example' };
    const { json: terms } = await browser.post('/api/siwe/nonce', {}, own);
    expect(terms).toMatchObject({ domain: 'gateway.example', uri: 'https://gateway.example' });
    await browser.post('/api/auth/sign-up/email', { email, password: goodPassword, name: 'Ada' }, own);
    await browser.get(
      new URL(linkIn((await gateway.mails(email))[0] ?? '')).href.replace(
        'https://gateway.example',
        gateway.url,
      ),
    );
    const answer = await browser.post('/api/auth/sign-in/email', { email, password: goodPassword }, own);
    const cookies = answer.headers.getSetCookie();
    expect(cookies).toHaveLength(2);
    for (const cookie of cookies) {
      expect(cookie).toMatch(/^__Host-tollbook\.(?:session_token|device)=/);
      for (const attribute of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax'])
        expect(cookie).toContain(attribute);
      expect(cookie).not.toContain('Domain');
    }
    expect(await userId(browser)).toEqual(expect.any(String));
  });

  test('over http on loopback have another name and the same other attributes', async () => {
    const gateway = await start();
    const [cookie = ''] = (await signInByWallet(gateway.browser())).headers.getSetCookie();
    expect(cookie).toMatch(
      /^tollbook\.session_token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });
});

test('sessions, device marks and links of mails remain valid while the session secret is replaced, and end with the old one', async () => {
  const log = logLines();
  const gateway = await startIdentityGateway({ logger: log.logger });
  const next = 'the-session-secret-that-follows-the-last';
  const uses = () => log.lines.filter(({ secret }) => secret === 'identity.secret').length;
  const early = gateway.browser();
  await signUp(gateway, early, email);
  expect(await signIn(early, email)).toMatchObject({ status: 200 });
  await gateway.browser().post('/api/auth/sign-up/email', {
    email: 'bo@example.org',
    password: goodPassword,
    name: 'Bo',
  });
  const [mailOfBo = ''] = await gateway.mails('bo@example.org');

  expect(await gateway.replaceSecret(identitySecret, next)).toEqual([]);
  expect(await userId(early)).toBeDefined();
  expect(uses()).toBe(0);

  expect(await gateway.replaceSecret(next, identitySecret)).toEqual([]);
  // better-auth's own routes and the gateway's
  expect(await userId(early)).toBeDefined();
  expect((await early.get('/api/keys')).status).toBe(200);
  expect(uses()).toBe(1);
  expect((await gateway.browser().get(linkIn(mailOfBo))).status).toBe(302);
  expect(await signIn(gateway.browser('203.0.113.9'), 'bo@example.org')).toMatchObject({ status: 200 });
  const late = gateway.browser('203.0.113.7');
  expect(await signIn(late, email)).toMatchObject({ status: 200 });

  expect(await gateway.replaceSecret(next)).toEqual([]);
  expect(await userId(late)).toBeDefined();
  expect(await userId(early)).toBeUndefined();
  expect((await early.get('/api/keys')).status).toBe(401);
  expect(JSON.stringify(log.lines)).not.toContain(next);
});
