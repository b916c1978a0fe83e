import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { deviceMark } from '../../../src/accounts/use-cases/sign-in-limits.ts';
import {
  type Answer,
  type Browser,
  goodPassword,
  identitySecret,
  signIn,
  signUp,
  startIdentityGateway,
  useIdentityGateway,
  sessionCookie,
} from '../../support/identity.ts';
import { allEvents } from '../../support/invariants.ts';
import { useShared } from '../../support/shared.ts';

const start = useIdentityGateway();

const wrong = (browser: Browser, email: string, at: number): Promise<Answer> =>
  signIn(browser, email, `a wrong password ${at}`);

/** How many guesses were allowed: wrong, or refused because all places for hashing were taken; and how many were not. */
function countAllowed(answers: readonly Answer[]): { allowed: number; limited: number } {
  const limited = answers.filter(({ status }) => status === 429).length;
  return { allowed: answers.filter(({ status }) => status === 401 || status === 503).length, limited };
}

describe('guessing passwords', () => {
  test('is limited to five a minute for one client and account, concurrent guesses included', async () => {
    const gateway = await start();
    await signUp(gateway, gateway.browser(), gateway.email);
    const browser = gateway.browser('198.51.100.1');
    const answers = await Promise.all(
      Array.from({ length: 15 }, (_, at) => wrong(browser, gateway.email, at)),
    );
    expect(countAllowed(answers)).toEqual({ allowed: 5, limited: 10 });
    expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toMatch(/^\d+$/);
  });

  test('is limited to ten a minute for an account over all clients, and its owner can still sign in', async () => {
    const gateway = await start();
    const { email } = gateway;
    const owner = gateway.browser();
    await signUp(gateway, owner, email);
    expect((await signIn(owner, email)).status).toBe(200);
    const attack = Array.from({ length: 30 }, (_, at) =>
      wrong(gateway.browser(`198.51.100.${at}`), email, at),
    );
    expect(countAllowed(await Promise.all(attack))).toEqual({ allowed: 9, limited: 21 });
    // from another place, with the browser that was here before
    const { cookies } = owner;
    const elsewhere = gateway.browser('192.0.2.1');
    elsewhere.cookies.set('tollbook.device', cookies.get('tollbook.device') ?? '');
    expect((await signIn(elsewhere, email)).status).toBe(200);
  });

  test('gains nothing from a forged device cookie or one of another account', async () => {
    const gateway = await start();
    const thief = gateway.browser('198.51.100.1');
    const eve = `eve.${gateway.email}`;
    await signUp(gateway, gateway.browser(), gateway.email);
    await signUp(gateway, thief, eve);
    await signIn(thief, eve);
    expect(thief.cookies.has('tollbook.device')).toBe(true);
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => (await wrong(thief, gateway.email, at)).status),
    );
    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
  });

  test.each([
    ['a byte order mark', '\ufeff', ''],
    ['spaces', ' \n', '\t '],
  ])(
    'is limited too when %s surrounds the body, which gives no other device mark',
    async (_, before, after) => {
      const gateway = await start();
      const { email } = gateway;
      const owner = gateway.browser();
      await signUp(gateway, owner, email);
      const send = (browser: Browser, password: string): Promise<Answer> =>
        browser.post('/api/auth/sign-in/email', before + JSON.stringify({ email, password }) + after);
      const thief = gateway.browser('198.51.100.1');
      const answers = await Promise.all(
        Array.from({ length: 9 }, (_value, at) => send(thief, `wrong ${at}`)),
      );
      expect(countAllowed(answers)).toEqual({ allowed: 5, limited: 4 });
      expect((await send(owner, goodPassword)).status).toBe(200);
      const [device = '', proof] = owner.cookies.get('tollbook.device')?.split('.') ?? [];
      expect(proof).toBe(deviceMark(identitySecret, email, device).split('.')[1]);
    },
  );

  test('is refused, and gives no device mark, when the body has no address', async () => {
    const browser = (await start()).browser();
    for (const body of [
      '[]',
      '"x"',
      'null',
      '{}',
      '{"email":["ada@example.org"]}',
      '{"email":""}',
      '{',
      '',
    ]) {
      const answer = await browser.post('/api/auth/sign-in/email', body);
      expect([body, answer.status, answer.json.code]).toEqual([body, 400, 'invalid_request']);
    }
    expect(browser.cookies.size).toBe(0);
  });

  test('is limited too by a request target that names an origin', async () => {
    const gateway = await start();
    const { email } = gateway;
    await signUp(gateway, gateway.browser(), gateway.email);
    const { hostname, port } = new URL(gateway.url);
    const send = (path: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.1' };
        const sent = httpRequest({ hostname, port, path, method: 'POST', headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject).end(JSON.stringify({ email, password: 'wrong' }));
      });
    const statuses: (number | undefined)[] = [];
    // an origin as long as the prefix of the paths, and a longer one
    for (const origin of ['http://ab', 'http://ab', 'HTTP://elsewhere', 'x://ab', 'http://ab', 'http://ab'])
      statuses.push(await send(`${origin}/api/auth/sign-in/email`));
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });

  describe('of many accounts by one client', () => {
    const attacked = useShared(async () => {
      const gateway = await startIdentityGateway();
      const browser = gateway.browser('198.51.100.1');
      const attack = Array.from({ length: 40 }, (_, at) => signIn(browser, `user${at}@example.org`));
      return { gateway, answers: await Promise.all(attack) };
    });

    test('is limited to twenty a minute', () => {
      expect(countAllowed(attacked().answers)).toEqual({ allowed: 20, limited: 20 });
    });

    test('leaves no names in the database, and records one refusal', async () => {
      const { database } = attacked().gateway;
      const { rows } = await database.pool.query<{ count: number }>(
        'select count(*)::int as count from tollbook.rate_window',
      );
      // of the client, and of twenty names alone and with it
      expect(rows[0]?.count).toBe(41);
      const refusals = (await allEvents(database.db)).filter(({ type }) => type === 'sign_in_refused');
      // of each wrong password, and one of the client for all that were not looked at
      const wrongs = attacked().answers.filter(({ status }) => status === 401);
      expect(refusals).toHaveLength(wrongs.length + 1);
    });
  });

  test('does not delay other work or known devices: few are hashed simultaneously, and too many are refused', async () => {
    const gateway = await startIdentityGateway();
    const owner = gateway.browser();
    const email = 'ada@example.org';
    await signUp(gateway, owner, email);
    await signIn(owner, email);
    const attack = Array.from({ length: 150 }, (_, at) =>
      signIn(gateway.browser(`198.51.100.${at}`), `user${at}@example.org`),
    );
    let hashed = 0;
    for (const guess of attack) void guess.then(({ status }) => (hashed += status === 401 ? 1 : 0));
    expect([401, 503]).toContain((await Promise.race(attack)).status);
    const hashedBefore = hashed;
    // DNS look-ups and file reads use the same few threads as password hashes
    await readFile(import.meta.filename);
    expect(hashed - hashedBefore).toBeLessThan(10);
    expect((await signIn(owner, email)).status).toBe(200);
    const statuses = (await Promise.all(attack)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401, 503]));
  });

  test('is limited to five a minute for a stolen session over all clients', async () => {
    const gateway = await start();
    const { email } = gateway;
    const owner = gateway.browser();
    await signUp(gateway, owner, email);
    await signIn(owner, email);
    const cookie = owner.cookies.get(sessionCookie) ?? '';
    const statuses: number[] = [];
    const escaped = (at: number): string => `%${cookie.charCodeAt(at).toString(16)}`;
    const spellings = [
      cookie,
      cookie.replace('.', '%2E'),
      `"${cookie}"`,
      decodeURIComponent(cookie),
      escaped(0) + cookie.slice(1),
      cookie.slice(0, 3) + escaped(3) + cookie.slice(4),
      `"${escaped(0)}${cookie.slice(1)}"`,
    ];
    for (const [at, spelling] of spellings.entries()) {
      const thief = gateway.browser(`198.51.100.${at}`);
      thief.cookies.set(sessionCookie, spelling);
      const body = { currentPassword: `a wrong password ${at}`, newPassword: 'of the thief’s own' };
      statuses.push((await thief.post('/api/auth/change-password', body)).status);
    }
    // 401: a spelling that the gateway does not write is not a session
    expect(statuses.filter((status) => status !== 401)).toEqual([400, 400, 400]);
  });

  test('is not possible by another spelling of the path', async () => {
    const { email, browser: open } = await start();
    const browser = open();
    for (const path of [
      '/api/auth/sign-in/email/',
      '/api/auth//sign-in/email',
      '/api/auth/sign-in%2femail',
      '/api/auth/./sign-in/../sign-in//email',
    ])
      expect((await browser.post(path, { email, password: 'x' })).status).toBe(404);
  });

  test('sends at most twenty mails a day to an address, from all clients together', async () => {
    const { database, browser, email } = await start();
    const mark = createHash('sha256').update(email).digest('base64url');
    await database.asOwner(async (owner) => {
      await owner.query(
        `insert into tollbook.rate_window (subject, hits, day, day_hits)
         values ($1, '{}', (tollbook.clock() at time zone 'UTC')::date, 19)`,
        [`mail:${mark}`],
      );
    });
    const ask = () => browser().post('/api/auth/request-password-reset', { email });
    expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('sends at most three mails a minute to a mailbox, however its address is written', async () => {
    const { browser } = await start();
    const spellings = ['eve.b@gmail.com', 'eve.b+1@gmail.com', 'EVE.B+2@gmail.com', 'e.v.e.b@gmail.com'];
    const others = ['eve+1@example.org', 'eve+2@example.org', 'eve@example.org', 'eve+3@example.org'];
    for (const addresses of [spellings, others]) {
      const statuses: number[] = [];
      for (const [at, email] of addresses.entries()) {
        const body = { email, password: goodPassword, name: 'Eve' };
        statuses.push((await browser(`198.51.100.${at}`).post('/api/auth/sign-up/email', body)).status);
      }
      expect(statuses).toEqual([200, 200, 200, 429]);
    }
    // a dot is part of a name elsewhere
    const body = { email: 'e.ve@example.org', password: goodPassword, name: 'Eve' };
    expect((await browser().post('/api/auth/sign-up/email', body)).status).toBe(200);
  });
});
