import { concatHex, createWalletClient, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { smartWallet } from '../../../src/devnet/contracts.ts';
import { parseAddress } from '../../../src/base/values/primitives.ts';
import { siweMessage, type SiweMessage } from '../../../src/accounts/rules/siwe.ts';
import { useChain } from '../../support/devnet.ts';
import {
  type Answer,
  type Browser,
  type SharedIdentityGateway,
  useIdentityGateway,
  newWallet,
  signInByWallet,
  siweFor,
  startIdentityGateway,
} from '../../support/identity.ts';
import { networkOf } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';

const verify = (browser: Browser, body: unknown): Promise<Answer> => browser.post('/api/siwe/verify', body);

const start = useIdentityGateway();

async function eventTypes(gateway: SharedIdentityGateway): Promise<string[]> {
  return (await gateway.newEvents()).map(({ type }) => type);
}

describe('a wallet', () => {
  test('creates a user with a credit account at its first sign-in, and finds it again', async () => {
    const gateway = await start();
    const wallet = newWallet();
    const first = await signInByWallet(gateway.browser(), wallet);
    const again = await signInByWallet(gateway.browser(), wallet);
    expect(first).toMatchObject({ status: 200, json: { session: { expires_at: expect.any(String) } } });
    expect(again.json.user).toEqual(first.json.user);
    expect(await eventTypes(gateway)).toEqual(['session_started', 'session_started']);
  });

  test('that signs in twenty times simultaneously for the first time is one user with twenty sessions', async () => {
    const gateway = await start();
    const wallet = newWallet();
    const browsers = Array.from({ length: 20 }, () => gateway.browser());
    const bodies = await Promise.all(browsers.map((browser) => siweFor(browser, wallet)));
    const answers = await Promise.all(browsers.map((browser, at) => verify(browser, bodies[at])));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(answers.map(({ json }) => json.user.id)).size).toBe(1);
    const cookies = browsers.map(({ cookies: held }) => held.get('tollbook.session_token'));
    expect(new Set(cookies).size).toBe(20);
    const events = await gateway.newEvents();
    expect(events.map(({ type }) => type)).toEqual(Array(20).fill('session_started'));
    expect(events.filter(({ data }) => 'is_sign_up' in data)).toHaveLength(1);
  });
});

test('a wallet signs in for a page of a trusted origin with the terms of that page, and for no other origin', async () => {
  const trusted = 'https://app.example';
  const gateway = await startIdentityGateway({ identity: `trusted_origins = ["${trusted}"]` });
  const termsFor = (origin: string) => gateway.browser().post('/api/siwe/nonce', undefined, { origin });
  const own = { domain: new URL(gateway.url).host, uri: gateway.url };
  const theirs = { domain: 'app.example', uri: trusted };
  expect(await termsFor(trusted)).toMatchObject({ status: 200, json: theirs });
  expect(await termsFor(gateway.url)).toMatchObject({ status: 200, json: own });
  for (const origin of ['https://other.example', 'http://app.example'])
    expect(await termsFor(origin)).toMatchObject({ status: 403 });
  const signedFor = async (site: { domain: string; uri: string }) =>
    verify(gateway.browser(), await siweFor(gateway.browser(), newWallet(), site));
  expect(await signedFor(theirs)).toMatchObject({ status: 200 });
  for (const site of [
    { ...own, uri: trusted },
    { ...theirs, uri: gateway.url },
    { ...theirs, uri: 'http://app.example' },
    { domain: 'other.example', uri: 'https://other.example' },
  ])
    expect(await signedFor(site)).toMatchObject({ status: 401, json: { code: 'siwe_mismatch' } });
});

test('one client can start sixty sessions a minute, with any number of wallets', async () => {
  const gateway = await start();
  const statuses = await Promise.all(
    Array.from({ length: 65 }, async () => (await signInByWallet(gateway.browser())).status),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(5);
  expect(await signInByWallet(gateway.browser('198.51.100.1'))).toMatchObject({ status: 200 });
});

describe('a nonce', () => {
  test('admits one of ten concurrent sign-ins with the same message', async () => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet());
    const answers = await Promise.all(Array.from({ length: 10 }, () => verify(gateway.browser(), body)));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200,
      ...Array.from({ length: 9 }, () => 401),
    ]);
  });

  test('is used up for all processes', async () => {
    const gateway = await start();
    const other = await startIdentityGateway({
      database: gateway.database,
      identity: `trusted_origins = ["${gateway.url}"]`,
    });
    const body = await siweFor(gateway.browser(), newWallet());
    expect(await verify(gateway.browser(), body)).toMatchObject({ status: 200 });
    expect(await verify(other.browser(), body)).toMatchObject({
      status: 401,
      json: { code: 'siwe_mismatch' },
    });
  });

  test('that is too old is refused, whatever time the message states', async () => {
    const gateway = await startIdentityGateway();
    const body = await siweFor(gateway.browser(), newWallet());
    await gateway.database.moveClock(301);
    expect(await verify(gateway.browser(), body)).toMatchObject({ status: 401 });
  });

  test('that was never issued is refused', async () => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet(), { nonce: '0123456789abcdef' });
    expect(await verify(gateway.browser(), body)).toMatchObject({
      status: 401,
      json: { reason: 'unknown_nonce' },
    });
  });

  test('has 128 random bits', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    const nonces = await Promise.all(
      Array.from({ length: 50 }, async () => (await browser.post('/api/siwe/nonce')).json.nonce as string),
    );
    expect(new Set(nonces).size).toBe(50);
    expect(nonces.every((nonce) => /^[0-9a-f]{32}$/.test(nonce))).toBe(true);
  });
});

describe('a message is refused', () => {
  test.each<[string, Partial<SiweMessage>, string]>([
    ['of another domain', { domain: 'evil.example' }, 'wrong_domain'],
    ['of another chain', { chainId: 5 }, 'wrong_chain'],
  ])('%s, and its refusal says why', async (_, otherwise, reason) => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet(), otherwise);
    const answer = await verify(gateway.browser(), body);
    expect(answer).toMatchObject({ status: 401, json: { code: 'siwe_mismatch', reason } });
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await eventTypes(gateway)).toEqual(['sign_in_refused']);
  });

  test('with another address in addition', async () => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet());
    const answer = await verify(gateway.browser(), { ...body, address: newWallet().address });
    expect(answer).toMatchObject({ status: 401, json: { reason: 'wrong_address' } });
  });

  test('signed by another wallet', async () => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet());
    const signature = await newWallet().signMessage({ message: body.message });
    expect(await verify(gateway.browser(), { ...body, signature })).toMatchObject({
      status: 401,
      json: { reason: 'signature_mismatch' },
    });
  });

  test.each([
    ['edited after it was signed', (text: string) => `${text}\nRequest ID: 1`, undefined],
    ['with a signature that is empty', (text: string) => text, '0x'],
  ])('%s', async (_, edit, otherwise) => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet());
    const edited = { ...body, message: edit(body.message), signature: otherwise ?? body.signature };
    expect(await verify(gateway.browser(), edited)).toMatchObject({ status: 401 });
  });

  test.each([
    ['of other types', { address: 1, message: 2, signature: 3 }],
    ['invalid JSON', '{'],
  ])('when the body is %s', async (_, body) => {
    const gateway = await start();
    expect(await verify(gateway.browser(), body)).toMatchObject({ status: 400 });
  });
});

describe('refused attempts', () => {
  test('of one client are limited to ten a minute, and do not affect other clients', async () => {
    const gateway = await startIdentityGateway();
    const bad = async (address: string): Promise<number> => {
      const browser = gateway.browser(address);
      const body = await siweFor(browser, newWallet(), { domain: 'evil.example' });
      return (await verify(browser, body)).status;
    };
    for (let at = 0; at < 10; at++) expect(await bad('203.0.113.1')).toBe(401);
    expect(await bad('203.0.113.1')).toBe(429);
    expect(await bad('203.0.113.2')).toBe(401);
    await gateway.database.moveClock(61);
    expect(await bad('203.0.113.1')).toBe(401);
  });

  test('that are concurrent are limited too', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    const body = await siweFor(browser, newWallet(), { domain: 'evil.example' });
    const answers = await Promise.all(Array.from({ length: 40 }, () => verify(browser, body)));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30);
    expect(await eventTypes(gateway)).toHaveLength(10);
  });

  test('for a wallet are limited to ten a minute over all clients, and do not keep its owner out', async () => {
    const gateway = await start();
    const wallet = newWallet();
    const statuses: number[] = [];
    for (let at = 0; at < 11; at++) {
      const browser = gateway.browser(`203.0.113.${at}`);
      const body = await siweFor(browser, wallet);
      const signature = await newWallet().signMessage({ message: body.message });
      statuses.push((await verify(browser, { ...body, signature })).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    expect(await signInByWallet(gateway.browser('198.51.100.1'), wallet)).toMatchObject({ status: 200 });
  });

  test("use up no nonce: the wallet's owner can sign in with it afterwards", async () => {
    const gateway = await start();
    const body = await siweFor(gateway.browser(), newWallet());
    const signature = await newWallet().signMessage({ message: body.message });
    expect(await verify(gateway.browser(), { ...body, signature })).toMatchObject({ status: 401 });
    expect(await verify(gateway.browser(), body)).toMatchObject({ status: 200 });
  });

  test('are recorded without an address', async () => {
    const gateway = await startIdentityGateway();
    const wallet = newWallet();
    const body = await siweFor(gateway.browser('203.0.113.77'), wallet, { chainId: 5 });
    await verify(gateway.browser('203.0.113.77'), body);
    const [event] = await allEvents(gateway.database.db);
    expect(event).toMatchObject({
      type: 'sign_in_refused',
      data: { method: 'wallet', reason: 'wrong_chain' },
    });
    expect(JSON.stringify(event).toLowerCase()).not.toContain(wallet.address.slice(2).toLowerCase());
    expect(JSON.stringify(event)).not.toContain('203.0.113.77');
  });
});

describe('a contract wallet', () => {
  const chain = useChain();

  async function contractMessage(browser: Browser) {
    const owner = privateKeyToAccount(devnetKeys.spare);
    const client = createWalletClient({ account: owner, transport: http(chain.rpcUrl), pollingInterval: 20 });
    const { abi, bytecode } = smartWallet;
    const hash = await client.deployContract({ abi, bytecode, args: [owner.address], chain: null });
    const { contractAddress } = await client.extend(publicActions).waitForTransactionReceipt({ hash });
    const address = parseAddress(contractAddress ?? '') ?? '0x';
    const { json: terms } = await browser.post('/api/siwe/nonce');
    const { domain, uri, nonce, chain_id: chainId } = terms;
    const issuedAt = new Date().toISOString();
    const message = siweMessage({ domain, address, uri, chainId, nonce, issuedAt });
    const signature = concatHex([await owner.signMessage({ message }), '0x00']);
    return { address, message, signature };
  }

  test('signs in when its contract accepts the signature', async () => {
    const gateway = await startIdentityGateway({
      identity: `siwe_chain_id = 84532\n${networkOf('eip155:84532', chain.rpcUrl)}`,
    });
    const browser = gateway.browser();
    const body = await contractMessage(browser);
    expect(await verify(browser, body)).toMatchObject({ status: 200 });
    expect(await verify(gateway.browser(), body)).toMatchObject({ status: 401 });
  });

  test('is not asked on another chain, where its address may be of another owner', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    rpc.lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : undefined);
    const gateway = await startIdentityGateway({ identity: networkOf('eip155:1', rpc.url) });
    rpc.lie = () => undefined;
    const browser = gateway.browser();
    expect(await verify(browser, await contractMessage(browser))).toMatchObject({ status: 503 });
  });

  test('is refused when the gateway has no chain', async () => {
    const gateway = await start();
    const browser = gateway.browser();
    expect(await verify(browser, await contractMessage(browser))).toMatchObject({ status: 401 });
  });

  test('that cannot be reached can sign in later with the same message', async () => {
    const gateway = await startIdentityGateway({ identity: networkOf('eip155:1', 'http://127.0.0.1:9') });
    const browser = gateway.browser();
    const answer = await verify(browser, await contractMessage(browser));
    expect(answer).toMatchObject({ status: 503, json: { code: 'sign_in_unavailable' } });
    expect(await allEvents(gateway.database.db)).toEqual([]);
  });
});
