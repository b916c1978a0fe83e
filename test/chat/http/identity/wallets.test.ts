import type { PrivateKeyAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { siweMessage, type SiweMessage } from '../../../../src/accounts/rules/siwe.ts';
import {
  type Answer,
  type Browser,
  identitySecret,
  newWallet,
  signIn,
  signInByWallet,
  signUp,
  siweFor,
  startIdentityGateway,
} from '../../../support/identity.ts';

const email = 'ada@example.org';

interface Terms {
  readonly nonce: string;
  readonly domain: string;
  readonly uri: string;
  readonly chain_id: number;
  readonly statement: string;
}

async function termsOf(browser: Browser): Promise<Terms> {
  const { status, json } = await browser.post('/api/wallets/nonce');
  expect(status).toBe(200);
  return json as Terms;
}

/** What a wallet has signed of these terms, but for what is said otherwise. */
async function signed(
  { nonce, domain, uri, chain_id: chainId, statement }: Terms,
  account: PrivateKeyAccount,
  otherwise: Partial<SiweMessage> = {},
) {
  const message = siweMessage({
    domain,
    address: account.address.toLowerCase() as Address,
    statement,
    uri,
    chainId,
    nonce,
    issuedAt: new Date().toISOString(),
    ...otherwise,
  });
  return { address: account.address, message, signature: await account.signMessage({ message }) };
}

async function link(browser: Browser, account: PrivateKeyAccount, otherwise?: Partial<SiweMessage>) {
  return browser.post('/api/wallets', await signed(await termsOf(browser), account, otherwise));
}

async function userId(browser: Browser): Promise<unknown> {
  return (await browser.get('/api/auth/get-session')).json?.user.id;
}

/** Ada, who has a password. */
async function start() {
  const gateway = await startIdentityGateway();
  const ada = gateway.browser();
  await signUp(gateway, ada, email);
  await signIn(ada, email);
  return { gateway, ada };
}

async function walletsOf(browser: Browser): Promise<string[]> {
  const { wallets } = (await browser.get('/api/wallets')).json as { wallets: { address: string }[] };
  return wallets.map(({ address }) => address);
}

const remove = (browser: Browser, { address }: PrivateKeyAccount): Promise<Answer> =>
  browser.request('DELETE', `/api/wallets/${address}`);

test('a wallet that was added signs in to the account, and one that was removed opens a separate account', async () => {
  const { gateway, ada } = await start();
  const wallet = newWallet();
  const added = await link(ada, wallet);
  expect([added.status, added.json]).toEqual([
    201,
    { address: wallet.address.toLowerCase(), contract_on: null },
  ]);
  expect((await link(ada, wallet)).status).toBe(201);
  const phone = gateway.browser('198.51.100.1');
  await signInByWallet(phone, wallet);
  expect(await userId(phone)).toBe(await userId(ada));
  expect((await phone.get('/api/wallets')).json.wallets).toEqual([
    { address: wallet.address.toLowerCase(), contract_on: null, added_at: expect.any(String) },
  ]);
  expect((await remove(ada, wallet)).json).toEqual({
    address: wallet.address.toLowerCase(),
    status: 'removed',
  });
  const later = gateway.browser('198.51.100.1');
  await signInByWallet(later, wallet);
  expect(await userId(later)).not.toBe(await userId(ada));
  expect(await walletsOf(ada)).toEqual([]);
});

test('a wallet that signs in to another account stays there, and its user gets a message', async () => {
  const { gateway, ada } = await start();
  const wallet = newWallet();
  const owner = gateway.browser('198.51.100.1');
  await signInByWallet(owner, wallet);
  const before = await userId(owner);
  const refused = await link(ada, wallet);
  expect([refused.status, refused.json.code]).toEqual([409, 'wallet_taken']);
  expect(await walletsOf(ada)).toEqual([]);
  await signInByWallet(owner, wallet);
  expect(await userId(owner)).toBe(before);
});

describe('a wallet is not added by a message', () => {
  test.each<[string, Partial<SiweMessage>]>([
    ['for another domain', { domain: 'other.example' }],
    ['that says something else', { statement: 'Sign in. This costs nothing and moves no tokens.' }],
    ['with a nonce that was never issued', { nonce: 'a'.repeat(96) }],
  ])('%s', async (_, otherwise) => {
    const { ada } = await start();
    const { status, json } = await link(ada, newWallet(), otherwise);
    expect([status, json.code]).toEqual([401, 'siwe_mismatch']);
    expect(await walletsOf(ada)).toEqual([]);
  });

  test('that was signed by somebody else, or changed afterwards', async () => {
    const { ada } = await start();
    const terms = await termsOf(ada);
    const [wallet, other] = [newWallet(), newWallet()];
    const right = await signed(terms, wallet);
    const { signature } = await signed(terms, other);
    for (const wrong of [
      { ...right, signature },
      { ...right, address: other.address },
      { ...right, message: right.message.replace('This costs nothing', 'This costs something') },
    ])
      expect((await ada.post('/api/wallets', wrong)).json.code).toBe('siwe_mismatch');
    // none of these used the nonce up
    expect((await ada.post('/api/wallets', right)).status).toBe(201);
  });

  test('whose nonce was used before', async () => {
    const { ada } = await start();
    const wallet = newWallet();
    const body = await signed(await termsOf(ada), wallet);
    expect((await ada.post('/api/wallets', body)).status).toBe(201);
    expect((await remove(ada, wallet)).status).toBe(200);
    expect((await ada.post('/api/wallets', body)).json.code).toBe('siwe_mismatch');
    expect(await walletsOf(ada)).toEqual([]);
  });

  test('whose nonce is too old, whatever time the message states', async () => {
    const { gateway, ada } = await start();
    const terms = await termsOf(ada);
    await gateway.database.moveClock(301);
    expect((await ada.post('/api/wallets', await signed(terms, newWallet()))).json.code).toBe(
      'siwe_mismatch',
    );
  });

  test('of another session, also of the same person', async () => {
    const { gateway, ada } = await start();
    const wallet = newWallet();
    const [again, thief] = [gateway.browser('203.0.113.9'), gateway.browser('198.51.100.1')];
    await signIn(again, email);
    await signInByWallet(thief);
    const body = await signed(await termsOf(ada), wallet);
    for (const other of [again, thief])
      expect((await other.post('/api/wallets', body)).json.code).toBe('siwe_mismatch');
    // with the thief's own account in the statement the nonce is still ada's
    const { statement } = await termsOf(thief);
    const mixed = await signed({ ...(await termsOf(ada)), statement }, wallet);
    expect((await thief.post('/api/wallets', mixed)).json.code).toBe('siwe_mismatch');
    expect((await ada.post('/api/wallets', body)).status).toBe(201);
  });

  test('of a sign-in, and the message that adds a wallet signs no user in', async () => {
    const { gateway, ada } = await start();
    const wallet = newWallet();
    expect((await ada.post('/api/wallets', await siweFor(ada, wallet))).json.code).toBe('siwe_mismatch');
    const body = await signed(await termsOf(ada), wallet);
    const thief = gateway.browser('198.51.100.1');
    expect((await thief.post('/api/siwe/verify', body)).json.code).toBe('siwe_mismatch');
    expect(thief.cookies.size).toBe(0);
  });
});

test('without a session, with a key, or from a page of another origin no wallet is added or removed', async () => {
  const { gateway, ada } = await start();
  const wallet = newWallet();
  const body = await signed(await termsOf(ada), wallet);
  const { key } = (await ada.post('/api/keys', { name: 'x' })).json as { key: string };
  for (const [method, where] of [
    ['GET', '/api/wallets'],
    ['POST', '/api/wallets/nonce'],
    ['POST', '/api/wallets'],
    ['DELETE', `/api/wallets/${wallet.address}`],
  ] as const) {
    const sent = method === 'POST' ? body : undefined;
    const stranger = await gateway.browser().request(method, where, sent);
    expect([where, stranger.status]).toEqual([where, 401]);
    const withKey = await ada.request(method, where, sent, { authorization: `Bearer ${key}` });
    expect([where, withKey.status]).toEqual([where, 401]);
    if (method === 'GET') continue;
    const elsewhere = await ada.request(method, where, sent, { origin: 'https://other.example' });
    expect([where, elsewhere.status]).toEqual([where, 403]);
  }
  expect(await walletsOf(ada)).toEqual([]);
});

test('a session that is older than ten minutes adds and removes no wallet', async () => {
  const { gateway, ada } = await start();
  const [wallet, other] = [newWallet(), newWallet()];
  expect((await link(ada, wallet)).status).toBe(201);
  const body = await signed(await termsOf(ada), other);
  await gateway.database.moveClock(601);
  for (const answer of [
    await ada.post('/api/wallets/nonce'),
    await ada.post('/api/wallets', body),
    await remove(ada, wallet),
  ])
    expect([answer.status, answer.json.code]).toEqual([403, 'session_not_fresh']);
  expect(await walletsOf(ada)).toEqual([wallet.address.toLowerCase()]);
});

test('the last way to sign in stays, also if two wallets are removed simultaneously', async () => {
  const { gateway } = await start();
  const person = gateway.browser('198.51.100.1');
  const [first, second] = [newWallet(), newWallet()];
  await signInByWallet(person, first);
  expect((await remove(person, first)).json.code).toBe('last_way_to_sign_in');
  expect((await link(person, second)).status).toBe(201);
  const answers = await Promise.all([remove(person, first), remove(person, second)]);
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409]);
  expect(await walletsOf(person)).toHaveLength(1);
});

test('a wallet of somebody else, or an unknown one, is not removed', async () => {
  const { gateway, ada } = await start();
  const wallet = newWallet();
  const owner = gateway.browser('198.51.100.1');
  await signInByWallet(owner, wallet);
  expect((await remove(ada, wallet)).json.code).toBe('wallet_not_found');
  expect((await ada.request('DELETE', '/api/wallets/0x12')).json.code).toBe('wallet_not_found');
  expect(await walletsOf(owner)).toEqual([wallet.address.toLowerCase()]);
});

test('of two accounts that add the same wallet simultaneously one has it', async () => {
  const { gateway, ada } = await start();
  const other = gateway.browser('198.51.100.1');
  await signInByWallet(other);
  const wallet = newWallet();
  const bodies = [await signed(await termsOf(ada), wallet), await signed(await termsOf(other), wallet)];
  const answers = await Promise.all([
    ada.post('/api/wallets', bodies[0]),
    other.post('/api/wallets', bodies[1]),
  ]);
  expect(answers.map(({ status }) => status).toSorted((one, two) => one - two)).toEqual([201, 409]);
});

test('a replaced session secret, kept with the new one, still proves a nonce', async () => {
  const { gateway, ada } = await start();
  const terms = await termsOf(ada);
  await gateway.replaceSecret('another-secret-of-the-gateway-of-32-characters', identitySecret);
  expect((await ada.post('/api/wallets', await signed(terms, newWallet()))).status).toBe(201);
});
