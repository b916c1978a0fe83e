import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { issueOperatorToken } from '../../../../src/accounts/use-cases/operator-tokens.ts';
import { setUserDisabled } from '../../../../src/accounts/use-cases/users.ts';
import { grantCredit } from '../../../../src/accounts/use-cases/credit/credit.ts';
import { findAccountId } from '../../../../src/accounts/store/credit.ts';
import { expectBooks, laneOn } from '../../../support/credit.ts';
import {
  type Browser,
  type IdentityGateway,
  newWallet,
  signIn,
  signInByWallet,
  signUp,
  siweFor,
  startIdentityGateway,
  useIdentityGateway,
} from '../../../support/identity.ts';
import { documentOf } from '../../../support/documented.ts';
import { allEvents } from '../../../support/invariants.ts';
import { freeModel, paidModel } from '../../../support/chat-gateway.ts';
import { tollbook } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';

const start = useIdentityGateway();

async function signedIn(gateway: IdentityGateway): Promise<{ browser: Browser; userId: string }> {
  const browser = gateway.browser();
  const { json } = await signInByWallet(browser);
  return { browser, userId: json.user.id };
}

const chat = (browser: Browser, model = freeModel) =>
  browser.post('/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 20,
  });

async function fundUser({ database }: IdentityGateway, userId: string, micros = 1_000_000n): Promise<void> {
  const accountId = await findAccountId(database.pool, `user:${userId}`);
  if (accountId === undefined) throw new Error('the user has no account');
  await grantCredit({ ...database, lane: laneOn(database) }, accountId, micros);
}

test('a disabled user is refused immediately with session, key and sign-in, is charged nothing, and is served again once enabled', async () => {
  const gateway = await startIdentityGateway();
  const { database } = gateway;
  const browser = gateway.browser();
  const account = newWallet();
  const { json: signed } = await signInByWallet(browser, account);
  await fundUser(gateway, signed.user.id);
  const email = 'ada@example.org';
  const byPassword = gateway.browser();
  await signUp(gateway, byPassword, email);
  const { json: made } = await browser.post('/api/keys', { name: 'laptop' });
  const withKey = (model = paidModel) =>
    gateway
      .browser()
      .post(
        '/v1/chat/completions',
        { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 },
        { authorization: `Bearer ${made.key}` },
      );
  expect((await withKey()).status).toBe(200);
  const ledger = { pool: database.pool, lane: laneOn(database) };
  const change = async (who: string, isDisabled: boolean) =>
    (await setUserDisabled(ledger, { who, operator: 'grace', isDisabled })).kind;
  const command = ['users', 'disable', account.address, '--by', 'grace'];
  expect((await tollbook(command, { DATABASE_URL: database.url })).stdout).toMatch(
    / is disabled, and 1 sessions have ended/,
  );
  expect(await change(signed.user.id, true)).toBe('unchanged');
  const refused = [await withKey(), await chat(browser), await browser.get('/api/keys')];
  expect(refused.map(({ status }) => status)).toEqual([401, 401, 401]);
  expect(await signInByWallet(browser, account)).toMatchObject({
    status: 403,
    json: { error: expect.stringContaining('disabled this user') },
  });
  expect(await change(email, true)).toBe('changed');
  expect(await signIn(byPassword, email)).toMatchObject({ status: 403, json: { code: 'USER_DISABLED' } });

  for (const who of [signed.user.id, email]) expect(await change(who, false)).toBe('changed');
  const again = [await withKey(), await signInByWallet(browser, account), await signIn(byPassword, email)];
  expect(again.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(await change('stranger@example.org', true)).toBe('unknown');
  await gateway.stop();
  const events = await expectBooks(database);
  expect(events.filter(({ type }) => type === 'chat_admitted')).toHaveLength(2);
  const changes = events.filter(({ type }) => /^user_(?:dis|en)abled$/.test(type));
  expect(changes.map(({ type, data }) => [type, 'operator' in data && data.operator])).toEqual([
    ['user_disabled', 'grace'],
    ['user_disabled', 'grace'],
    ['user_enabled', 'grace'],
    ['user_enabled', 'grace'],
  ]);
});

describe('a session', () => {
  test('may request thirty completions a minute, in all processes together', async () => {
    const gateway = await start();
    const other = await startIdentityGateway({ database: gateway.database });
    const { browser } = await signedIn(gateway);
    const elsewhere = other.browser('198.51.100.1');
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
    const asked = Array.from({ length: 40 }, (_, at) => chat(at % 2 === 0 ? browser : elsewhere));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
    expect((await chat(gateway.browser('198.51.100.2'))).headers.get('x-ratelimit-limit')).toBe('5');
    expect((await chat(browser)).headers.get('x-ratelimit-limit')).toBe('30');
  });

  test('spends its user’s credit and reports the balance; without credit the answer is 402', async () => {
    const gateway = await startIdentityGateway();
    const { browser, userId } = await signedIn(gateway);
    expect(await chat(browser, paidModel)).toMatchObject({
      status: 402,
      json: { error: { code: 'insufficient_funds' } },
    });
    await fundUser(gateway, userId);
    // the refusal before is remembered for a second
    const answer = await eventually(async () => {
      const tried = await chat(browser, paidModel);
      expect(tried.status).toBe(200);
      return tried;
    });
    await eventually(async () => {
      const generation = await browser.get(`/v1/generation?id=${answer.headers.get('x-request-id')}`);
      expect(generation.status).toBe(200);
    });
    await gateway.stop();
    const events = await expectBooks(gateway.database);
    const admitted = events.filter(({ type }) => type === 'chat_admitted');
    expect(admitted.map(({ data }) => data)).toEqual([
      expect.objectContaining({ caller: 'session', account_id: expect.any(Number), model: paidModel }),
    ]);
    expect(events.filter(({ type }) => type === 'credit_captured')).toHaveLength(1);
  });

  test('is ignored in a request with an explicit credential, even a wrong one', async () => {
    const gateway = await start();
    const { browser } = await signedIn(gateway);
    const key = await gateway.key();
    const ask = (authorization: string) =>
      browser.post(
        '/v1/chat/completions',
        { model: freeModel, messages: [{ role: 'user', content: 'hello' }] },
        { authorization },
      );
    expect((await ask(`Bearer ${key}`)).headers.get('x-ratelimit-limit')).toBe('60');
    expect((await ask('Bearer sk-net-wrong')).status).toBe(401);
  });
});

describe('a key created by a session', () => {
  test('works with the official client, and is refused in every process once it is revoked', async () => {
    const gateway = await startIdentityGateway();
    const other = await startIdentityGateway({ database: gateway.database });
    const { browser, userId } = await signedIn(gateway);
    await fundUser(gateway, userId);
    const made = await browser.post('/api/keys', { name: 'laptop' });
    expect(made).toMatchObject({
      status: 201,
      json: { name: 'laptop', key: expect.stringMatching(/^sk-net-/) },
    });
    const ask = (at: IdentityGateway) =>
      new OpenAI({ baseURL: `${at.url}/v1`, apiKey: made.json.key, maxRetries: 0 }).chat.completions.create({
        model: paidModel,
        messages: [{ role: 'user', content: 'hello' }],
        max_tokens: 20,
      });
    for (const at of [gateway, other]) expect((await ask(at)).choices).toHaveLength(1);
    const { status } = await browser.request('DELETE', `/api/keys/${made.json.id}`);
    expect(status).toBe(200);
    for (const at of [gateway, other]) await expect(ask(at)).rejects.toMatchObject({ status: 401 });
    const types = (await allEvents(gateway.database.db)).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith('key_'))).toEqual(['key_created', 'key_revoked']);
  });

  test("belongs to the session's user, whatever the request says", async () => {
    const gateway = await start();
    const [ada, eve] = [await signedIn(gateway), await signedIn(gateway)];
    const { json: made } = await ada.browser.post('/api/keys', { name: 'mine' });
    for (const more of [{ user_id: ada.userId }, { userId: ada.userId }, { account_id: 1 }])
      expect((await eve.browser.post('/api/keys', { name: 'x', ...more })).status).toBe(400);
    expect((await eve.browser.request('DELETE', `/api/keys/${made.id}`)).status).toBe(404);
    expect((await eve.browser.get('/api/keys')).json.keys).toEqual([]);
    expect((await ada.browser.get('/api/keys')).json.keys).toHaveLength(1);
  });

  test('can neither create nor revoke keys', async () => {
    const gateway = await start();
    const { browser } = await signedIn(gateway);
    const { json: made } = await browser.post('/api/keys', { name: 'laptop' });
    const authorization = `Bearer ${made.key}`;
    for (const asker of [browser, gateway.browser()]) {
      expect((await asker.post('/api/keys', { name: 'more' }, { authorization })).status).toBe(401);
      expect(
        (await asker.request('DELETE', `/api/keys/${made.id}`, undefined, { authorization })).status,
      ).toBe(401);
    }
  });

  test.each([
    ['no name', {}],
    ['an empty name', { name: '' }],
    ['a name of two lines', { name: 'a\nb' }],
    ['a cap that is not an amount', { name: 'x', cap: '-1' }],
    ['a cap that is a number', { name: 'x', cap: 5 }],
    ['a model that is not served', { name: 'x', models: ['nothing'] }],
    ['no models at all', { name: 'x', models: [] }],
    ['an expiry in the past', { name: 'x', expires_at: '2020-01-01T00:00:00Z' }],
    ['an expiry that is not a time', { name: 'x', expires_at: 'tomorrow' }],
  ])('is not created with %s', async (_, body) => {
    const gateway = await start();
    const { browser } = await signedIn(gateway);
    expect(await browser.post('/api/keys', body)).toMatchObject({
      status: 400,
      json: { code: 'invalid_request' },
    });
  });

  test('is refused when its user has a hundred valid keys', async () => {
    const gateway = await start();
    const { browser, userId } = await signedIn(gateway);
    const accountId = await findAccountId(gateway.database.pool, `user:${userId}`);
    await gateway.database.asOwner((owner) =>
      owner.query(
        `insert into tollbook.api_key (account_id, hash, name, is_of_user, created_at)
         select $1, sha256(('valid ' || at)::bytea), 'old', true, tollbook.clock() from generate_series(1, 100) at`,
        [accountId],
      ),
    );
    expect(await browser.post('/api/keys', { name: 'new' })).toMatchObject({ status: 409 });
  });

  test('is refused after twenty in a minute', async () => {
    const gateway = await start();
    const { browser } = await signedIn(gateway);
    const made = await Promise.all(
      Array.from({ length: 25 }, () => browser.post('/api/keys', { name: 'x' })),
    );
    expect(made.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(made.filter(({ status }) => status === 429)).toHaveLength(5);
  });
});

test('answers below /api match the OpenAPI document', async () => {
  const gateway = await startIdentityGateway();
  const check = await documentOf(gateway);
  const browser = gateway.browser();
  const ask = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await browser.request(method, path, body, headers);
    const described = path.startsWith('/api/auth/') ? '/api/auth/action' : path;
    expect([path, answer.status, check(method, described, answer)]).toEqual([path, answer.status, []]);
    return answer;
  };
  const body = await siweFor(browser, newWallet());
  await ask('POST', '/api/siwe/nonce', {});
  await ask('POST', '/api/siwe/nonce', {}, { origin: 'https://evil.example' });
  await ask('POST', '/api/siwe/verify', {});
  await ask('POST', '/api/siwe/verify', { ...body, address: '0x' });
  await ask('GET', '/api/keys');
  await ask('GET', '/api/auth/get-session');
  await ask('POST', '/api/siwe/verify', body);
  const { json: made } = await ask('POST', '/api/keys', { name: 'x' });
  await ask('POST', '/api/keys', {});
  await ask('GET', '/api/keys');
  await ask('DELETE', `/api/keys/${made.id}`);
  await ask('DELETE', '/api/keys/999');
  await ask('GET', '/api/auth/get-session');
  await ask('POST', '/api/auth/sign-in/email', { email: 'eve@example.org', password: 'x' });
  await ask('POST', '/api/auth/sign-out');
});

test('a key that an operator makes for a user is mailed to the user, and listed as the operator’s', async () => {
  const gateway = await startIdentityGateway();
  const { database } = gateway;
  const email = 'ada@example.org';
  const browser = gateway.browser();
  await signUp(gateway, browser, email);
  const { json: signedInAs } = await signIn(browser, email);
  const lane = laneOn(database);
  const asked = { name: 'ops', scopes: ['keys:write'] as const };
  const { token } = await issueOperatorToken({ ...database, lane }, asked);
  const made = await fetch(`${gateway.url}/operator/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ account: `user:${signedInAs.user.id}`, name: 'not of Ada' }),
  });
  const { key } = (await made.json()) as { key: string };
  const mail = (await gateway.mails(email, 2)).find((text) => text.includes('A new API key')) ?? '';
  expect(mail).toContain('not of Ada');
  expect(mail).not.toContain(key);
  const { keys } = (await browser.get('/api/keys')).json;
  expect(keys).toMatchObject([{ name: 'not of Ada', made_by: 'operator' }]);
});
