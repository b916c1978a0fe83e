import {
  createSIWxClientExtension,
  createSIWxPayload,
  encodeSIWxHeader,
  parseSIWxHeader,
  type SIWxExtension,
  verifySIWxSignature,
} from '@x402/extensions/sign-in-with-x';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { smartWallet } from '../../../src/devnet/contracts.ts';
import { deployContract } from '../../support/contracts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { payer, payFor } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const path = '/x402/receipts';
const stranger = privateKeyToAccount(generatePrivateKey());

async function challengeOf(gateway: TestGateway): Promise<SIWxExtension> {
  const answer = await gateway.get(path);
  expect(answer).toMatchObject({ status: 402, json: { code: 'wallet_signature_required' } });
  const header = Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString();
  const { accepts, extensions } = JSON.parse(header);
  expect(accepts).toEqual([]);
  return extensions['sign-in-with-x'];
}

/** What the official package makes of a challenge; `edited` replaces what is signed. */
async function signedBy(
  account: typeof payer,
  { info, supportedChains }: SIWxExtension,
  edited: object = {},
) {
  const [first] = supportedChains;
  if (!first) throw new Error('no chain');
  const complete = { ...info, ...first, ...edited };
  return createSIWxPayload(complete, account, complete.uri);
}

const ask = (gateway: TestGateway, payload: Awaited<ReturnType<typeof signedBy>>) =>
  gateway.get(path, { 'sign-in-with-x': encodeSIWxHeader(payload) });

async function paid(gateway: TestGateway, options = {}) {
  const answer = await payFor(gateway, job, 'a body', options);
  expect(answer.status).toBe(202);
  return answer.json as { quote_digest: string; receipt_token: string };
}

test('the official client gets the paid calls of its wallet, with tokens that open their receipts; another wallet gets none', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const check = await documentOf(gateway);
  const { quote_digest, receipt_token } = await paid(gateway);
  expect(check('GET', path, await gateway.get(path))).toEqual([]);
  const pages = async (account: typeof payer) => {
    const client = x402Client.fromConfig({
      schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
      spendControls: false,
    });
    client.registerExtension(createSIWxClientExtension({ signers: [account] }));
    const answer = await wrapFetchWithPayment(fetch, client)(gateway.url + path);
    const text = await answer.text();
    expect(check('GET', path, { status: answer.status, headers: answer.headers, text })).toEqual([]);
    return JSON.parse(text);
  };
  // once the read models have it
  await eventually(async () =>
    expect(await pages(payer)).toMatchObject({
      payer: payer.address.toLowerCase(),
      receipts: [
        { quote_digest, receipt_token, service_id: 1, job_index: 0, symbol: 'USDC', amount: '3264000' },
      ],
      next: null,
    }),
  );
  const receipt = await gateway.get(`${path}/${quote_digest}`, { authorization: `Bearer ${receipt_token}` });
  expect(receipt.status).toBe(200);
  expect(await pages(stranger)).toMatchObject({ payer: stranger.address.toLowerCase(), receipts: [] });
});

test('a replayed nonce, another domain, address or chain, an edited message and one that is old or expired are refused with a new challenge, and use up no nonce', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const challenge = await challengeOf(gateway);
  const good = await signedBy(payer, challenge);
  expect(await verifySIWxSignature(parseSIWxHeader(encodeSIWxHeader(good)))).toMatchObject({ isValid: true });
  const longAgo = new Date(Date.now() - 301_000).toISOString();
  const elsewhere = { domain: 'elsewhere.example', uri: 'https://elsewhere.example/x402/receipts' };
  const cases: readonly (readonly [Awaited<ReturnType<typeof signedBy>>, string])[] = [
    [await signedBy(payer, challenge, elsewhere), 'wrong_domain'],
    [await signedBy(payer, challenge, { uri: `${gateway.url}/api/auth/siwe` }), 'wrong_uri'],
    [await signedBy(payer, challenge, { chainId: 'eip155:1' }), 'wrong_chain'],
    [await signedBy(payer, challenge, { issuedAt: longAgo }), 'too_old'],
    [await signedBy(payer, challenge, { expirationTime: longAgo }), 'expired'],
    [await signedBy(payer, challenge, { nonce: 'a'.repeat(32) }), 'unknown_nonce'],
    [{ ...good, address: stranger.address }, 'signature_mismatch'],
    [{ ...good, statement: 'Something else.' }, 'signature_mismatch'],
    [{ ...good, statement: 'Two\nlines' }, 'malformed'],
    [{ ...good, chainId: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' }, 'malformed'],
  ];
  for (const [payload, reason] of cases)
    expect(await ask(gateway, payload)).toMatchObject({
      status: 402,
      json: { code: 'wallet_signature_required', reason },
    });
  for (const text of ['', '%%%', Buffer.from('[1]').toString('base64'), Buffer.from('{').toString('base64')])
    expect((await gateway.get(path, { 'sign-in-with-x': text })).json.reason).toBe('malformed');
  expect((await ask(gateway, good)).status).toBe(200);
  expect(await ask(gateway, good)).toMatchObject({ status: 402, json: { reason: 'unknown_nonce' } });
  const both = await signedBy(payer, await challengeOf(gateway));
  const answers = await Promise.all([ask(gateway, both), ask(gateway, both)]);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 402]);
});

test('a contract wallet sees its paid calls for a signature that its contract accepts (ERC-1271)', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
  await chain.mint(wallet, 10_000_000n);
  const { quote_digest } = await paid(gateway, { signed: { from: wallet } });
  const as = (account: typeof payer) => ({ ...account, address: wallet, signMessage: account.signMessage });
  const list = async (account: typeof payer) =>
    ask(gateway, await signedBy(as(account), await challengeOf(gateway)));
  await eventually(async () => expect((await list(payer)).json.receipts).toMatchObject([{ quote_digest }]));
  expect(await list(stranger)).toMatchObject({ status: 402, json: { reason: 'signature_mismatch' } });
});
