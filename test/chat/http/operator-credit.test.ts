import { expect, test } from 'vitest';
import type { OperatorScope } from '../../../src/base/values/operator-scope.ts';
import { issueApiKey } from '../../../src/accounts/use-cases/api-keys.ts';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { admission, expectBooks, fund, laneOn } from '../../support/credit.ts';
import { documentOf } from '../../support/documented.ts';
import { paidModel, startChatGateway } from '../../support/chat-gateway.ts';

const all: OperatorScope[] = ['keys:read', 'keys:write', 'credit:read', 'credit:write'];

/** A gateway that serves models alone, asked by an operator; every answer is held against the gateway's own document. */
async function start(scopes: readonly OperatorScope[] = all, accounts?: readonly string[]) {
  const gateway = await startChatGateway();
  const { database } = gateway;
  const lane = laneOn(database);
  const { token, tokenId } = await issueOperatorToken(
    { ...database, lane },
    { name: 'ops', scopes, accounts },
  );
  const check = await documentOf(gateway);
  const ask = async (
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    bearer = token,
    more: Record<string, string> = {},
  ) => {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...more },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const { status, headers } = response;
    const text = await response.text();
    expect(check(method, path, { status, headers, text })).toEqual([]);
    // a request that is refused unread has no content that could be stored
    expect(status === 400 || headers.get('cache-control') === 'no-store').toBe(true);
    return { status, json: JSON.parse(text) };
  };
  const post = (path: string, body?: unknown) => ask('POST', path, body ?? {});
  return { gateway, database, lane, tokenId, ask, post, get: (path: string) => ask('GET', path) };
}

test('an operator creates a key and grants credit, and the key buys completions until it is revoked', async () => {
  const { gateway, database, post, get, tokenId } = await start();
  const made = await post('/operator/keys', { account: 'alice', name: 'my bot', cap: '5.00', days: 30 });
  expect(made).toMatchObject({ status: 201, json: { key_id: 1, account: 'alice' } });
  const { key, key_id } = made.json;
  const granted = await post('/operator/accounts/alice/grants', { amount: '10.000001' });
  expect(granted).toEqual({ status: 200, json: { account: 'alice', balance: '10.000001' } });

  const complete = () =>
    gateway.post(
      { model: paidModel, messages: [{ role: 'user', content: 'hello' }] },
      { authorization: `Bearer ${key}` },
    );
  expect((await complete()).status).toBe(200);
  const [listed] = (await get('/operator/keys?account=alice')).json.keys;
  expect(listed).toMatchObject({ key_id, name: 'my bot', cap: '5', models: null, revoked_at: null });
  expect(JSON.stringify(listed)).not.toContain(key.slice(0, 10));
  const days = (Date.parse(listed.expires_at) - Date.parse(listed.created_at)) / 86_400_000;
  expect(days).toBeCloseTo(30, 2);

  for (let asked = 0; asked < 2; asked++)
    expect(await post(`/operator/keys/${key_id}/revoke`)).toEqual({
      status: 200,
      json: { key_id, status: 'revoked' },
    });
  expect((await complete()).status).toBe(401);
  await gateway.stop();
  const events = await expectBooks(database);
  const byToken = events.filter(({ data }) => 'token_id' in data && data.token_id === tokenId);
  expect(byToken.map(({ type }) => type)).toEqual([
    'operator_token_created',
    'key_created',
    'credit_granted',
    'key_revoked',
  ]);
});

test('accounts are listed with their balances, in pages', async () => {
  const { database, lane, get } = await start();
  const accountId = await fund(database, lane, 1_000_000n);
  await lane.appendCredit(admission({ accountId, holdMicros: 250_000n }));
  await fund(database, lane, 5n);
  const first = await get('/operator/accounts?limit=1');
  expect(first.json.accounts).toMatchObject([
    { account_id: accountId, balance: '0.75', held: '0.25', total_used: '0' },
  ]);
  const second = await get(`/operator/accounts?limit=1&after=${accountId}`);
  expect(second.json.accounts).toMatchObject([{ balance: '0.000005' }]);
});

test('each route requires its own scope, and changes nothing without it', async () => {
  const reader = await start(['keys:read', 'credit:read']);
  expect((await reader.get('/operator/keys')).status).toBe(200);
  expect((await reader.get('/operator/accounts')).status).toBe(200);
  expect((await reader.post('/operator/keys', { account: 'alice' })).status).toBe(403);
  expect((await reader.post('/operator/accounts/alice/grants', { amount: '1' })).status).toBe(403);
  const types = (await expectBooks(reader.database)).map(({ type }) => type);
  expect(types).toEqual(['operator_token_created']);
});

test('a token that is limited to accounts creates, lists and revokes keys, and grants credit, only for these', async () => {
  const { database, lane, get, post } = await start(all, ['alice', 'carol']);
  const accountId = await fund(database, lane, 5n);
  const { keyId } = await issueApiKey({ ...database, lane }, { accountId, name: 'of another account' });
  const made = await post('/operator/keys', { account: 'alice' });
  expect(made.status).toBe(201);
  for (const account of ['bob', 'Alice', 'alice2', 'user:00000000-0000-4000-8000-000000000000']) {
    const refused = { status: 403, json: { code: 'forbidden' } };
    expect(await post('/operator/keys', { account })).toMatchObject(refused);
    expect(await get(`/operator/keys?account=${account}`)).toMatchObject(refused);
    expect(await post(`/operator/accounts/${account}/grants`, { amount: '1' })).toMatchObject(refused);
  }
  expect(await post(`/operator/keys/${keyId}/revoke`)).toMatchObject(notFound('key_not_found'));
  expect((await post(`/operator/keys/${made.json.key_id}/revoke`)).status).toBe(200);
  expect((await post('/operator/accounts/alice/grants', { amount: '1' })).status).toBe(200);
  const { keys } = (await get('/operator/keys')).json;
  expect(keys.map(({ key_id }: { readonly key_id: number }) => key_id)).toEqual([made.json.key_id]);
  const { accounts } = (await get('/operator/accounts')).json;
  expect(accounts).toMatchObject([{ account: 'alice', balance: '1' }]);
  const [created] = await expectBooks(database);
  expect(created?.data).toMatchObject({ accounts: ['alice', 'carol'] });
});

const notFound = (code: string) => ({ status: 404, json: { code } });

test('an unknown key or account is 404, and a grant beyond the maximum balance is refused', async () => {
  const { post, get } = await start();
  expect(await get('/operator/keys?account=nobody')).toMatchObject(notFound('account_not_found'));
  for (const name of ['nobody', 'two%20words', '%00', 'x'.repeat(500)])
    expect(await post(`/operator/accounts/${name}/grants`, { amount: '1' })).toMatchObject(
      notFound('account_not_found'),
    );
  for (const id of ['7', '0', 'first', '9'.repeat(16)])
    expect(await post(`/operator/keys/${id}/revoke`)).toMatchObject(notFound('key_not_found'));
  await post('/operator/keys', { account: 'alice' });
  const grant = () => post('/operator/accounts/alice/grants', { amount: '999999999.999999' });
  for (let given = 0; given < 9; given++) expect((await grant()).status).toBe(200);
  expect(await grant()).toMatchObject({ status: 409, json: { code: 'account_full' } });
});

test.each([
  [{}, 'account'],
  [{ account: 'two words' }, 'account'],
  [{ account: 'a', name: 'two\nlines' }, 'name'],
  [{ account: 'a', models: [] }, 'models'],
  [{ account: 'a', cap: 5 }, 'cap'],
  [{ account: 'a', cap: '0.0000001' }, 'cap'],
  [{ account: 'a', days: 0 }, 'days'],
])('a request %j for a key is refused with the name of the wrong field', async (body, field) => {
  const { database, post } = await start();
  const { status, json } = await post('/operator/keys', body);
  expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_request' });
  expect(Object.keys(json.details.fieldErrors)).toEqual([field]);
  expect((await expectBooks(database)).map(({ type }) => type)).toEqual(['operator_token_created']);
});

test('a grant repeated with its idempotency key is done once and answered the same', async () => {
  const { database, ask, post } = await start();
  for (const account of ['alice', 'bob']) await post('/operator/keys', { account });
  const grant = (key: string, amount: string, account = 'alice') =>
    ask('POST', `/operator/accounts/${account}/grants`, { amount }, undefined, { 'idempotency-key': key });
  const name = 'b3f1c1de-9b0e-4c57-8a53-5d0d7e5a3c11';
  const once = { status: 200, json: { account: 'alice', balance: '5' } };
  for (const answer of await Promise.all(Array.from({ length: 8 }, () => grant(name, '5.00'))))
    expect(answer).toEqual(once);
  expect(await grant(`${name}_2`, '1')).toMatchObject({ json: { balance: '6' } });
  expect(await grant(name, '5')).toEqual(once);
  const conflict = { status: 409, json: { code: 'idempotency_conflict' } };
  expect(await grant(name, '5.000001')).toMatchObject(conflict);
  expect(await grant(name, '5', 'bob')).toMatchObject(conflict);
  for (const bad of ['short', 'x'.repeat(129), `${name} 2`, `${name}, ${name}`])
    expect(await grant(bad, '5')).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
  const events = await expectBooks(database);
  expect(events.filter(({ type }) => type === 'credit_granted')).toHaveLength(2);
});

test('an invalid amount grants nothing', async () => {
  const { database, post } = await start();
  await post('/operator/keys', { account: 'alice' });
  for (const amount of ['0', '0.000000', '-1', '1e3', '1.', 1, undefined])
    expect(await post('/operator/accounts/alice/grants', { amount })).toMatchObject({
      status: 400,
      json: { code: 'invalid_request' },
    });
  for (const body of ['', '{', '[]', '"1"'])
    expect((await post('/operator/accounts/alice/grants', body)).status).toBe(400);
  expect((await expectBooks(database)).map(({ type }) => type)).not.toContain('credit_granted');
});
