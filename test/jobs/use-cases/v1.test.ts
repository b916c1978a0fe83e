import { decodePaymentResponseHeader } from '@x402/core/http';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, onTestFinished, test } from 'vitest';
import { smartWallet } from '../../../src/devnet/contracts.ts';
import { revokeQuotes } from '../../../src/jobs/use-cases/revoke-quotes.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { deployContract } from '../../support/contracts.ts';
import {
  type Answer,
  payTo,
  startTestGateway,
  testConfig,
  type TestGateway,
  startWithDatabase,
} from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, payer, payFor, signOffer, v1Header } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const documented = { chain, isDocumented: true };
const job = '/x402/jobs/1/0';
const price = 3_264_000n;

/** A version 1 payment, as an honest client makes it of the body of a 402. */
async function signV1(
  gateway: TestGateway,
  { body = 'x', option = 0, from }: { body?: string; option?: number; from?: string } = {},
) {
  const offer = offerOf(await gateway.post(job, { body }));
  const { payload } = await signOffer(offer, { option, ...(from && { signed: { from } }) });
  return { v1: { payload }, payload };
}

/** A version 1 client reads only the body: the version 2 header is removed. */
const bodyOnly: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const headers = new Headers(response.headers);
  headers.delete('payment-required');
  return new Response(response.body, { status: response.status, headers });
};

test('the official client in version 1 pays through with a real transfer', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const before = await chain.balance(payTo);
  const client = x402Client.fromConfig({
    schemes: [
      { network: 'base-sepolia' as 'eip155:84532', client: new ExactEvmSchemeV1(payer), x402Version: 1 },
    ],
    spendControls: false,
  });
  const response = await wrapFetchWithPayment(bodyOnly, client)(gateway.url + job, {
    method: 'POST',
    body: 'v1',
  });
  expect(response.status).toBe(202);
  const accepted = (await response.json()) as { quote_digest: string; receipt_token: string };
  expect(accepted.receipt_token).toBeTypeOf('string');
  expect((await chain.balance(payTo)) - before).toBe(price);
  expect(decodePaymentResponseHeader(response.headers.get('x-payment-response') ?? '')).toMatchObject({
    success: true,
    network: 'base-sepolia',
  });
  expect(response.headers.get('payment-response')).toBeNull();
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ stream }) => stream === accepted.quote_digest).map(({ type }) => type)).toEqual([
    'quote_issued',
    'payment_verified',
    'settlement_started',
    'payment_settled',
    'enqueued',
  ]);
});

test('the body of a 402 offers version 1 clients one token of each network, under its version 1 name', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const { json } = await gateway.post(job, { body: 'x' });
  expect(json).toMatchObject({ x402Version: 1, code: 'payment_required', error: expect.any(String) });
  expect(json.accepts).toEqual([
    {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: String(price),
      asset: chain.token,
      payTo,
      resource: `${gateway.url}${job}`,
      description: expect.any(String),
      mimeType: expect.any(String),
      maxTimeoutSeconds: 300,
      outputSchema: { input: expect.objectContaining({ type: 'http', method: 'POST', discoverable: true }) },
      extra: { name: 'USD Coin', version: '2' },
    },
  ]);
});

test('a version 1 payment gets its own digest, and leaves the quote of another client open', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const digest = offer.accepts[0]?.extra['quoteDigest'];
  const { v1 } = await signV1(gateway);
  const paid = await gateway.post(job, { body: 'x', headers: v1Header(v1) });
  expect(paid.status).toBe(202);
  expect(paid.json.quote_digest).not.toBe(digest);
  expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({
    state: 'quoted',
    paid: false,
  });
  const other = await gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
  expect(other).toMatchObject({ status: 202, json: { quote_digest: digest } });
});

test('one authorization sent in both versions is one payment', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const before = await chain.balance(payTo);
  const payment = await signOffer(offerOf(await gateway.post(job, { body: 'x' })));
  expect((await gateway.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
  const again = await gateway.post(job, { body: 'x', headers: v1Header({ payload: payment.payload }) });
  expect(again).toMatchObject({ status: 202, text: '{"status":"accepted"}' });
  const elsewhere = await gateway.post(job, {
    body: 'other',
    headers: v1Header({ payload: payment.payload }),
  });
  expect(elsewhere).toMatchObject({ status: 409, json: { code: 'payment_replay' } });
  expect((await chain.balance(payTo)) - before).toBe(price);
});

/** The answer of an account to a challenge. */
const signed = async ({ json }: Answer, account = payer) => ({
  challenge: json.challenge,
  expires_at: json.expires_at,
  signature: await account.signTypedData(json.typed_data),
});

test('a payer whose answer was lost gets the receipt and its token for a signature over a challenge; a stranger does not', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const { v1, payload } = await signV1(gateway);
  const paid = await gateway.post(job, { body: 'x', headers: v1Header(v1) });
  const { quote_digest: digest, receipt_token: token } = paid.json as Record<string, string>;
  const { nonce } = payload.authorization;
  const network = 'eip155:84532';
  const payment = { network, asset: chain.token, payer: payer.address.toLowerCase(), nonce };
  const ask = (path: string, body: object) =>
    gateway.post(`/x402/receipts/${path}`, {
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
  const stranger = privateKeyToAccount(generatePrivateKey());
  const strange = { ...payment, nonce: `0x${'ab'.repeat(32)}` };

  // nothing is said about a payment before its payer has signed, not even that there is one
  const [known, unknown] = [await ask('token', { payment }), await ask('token', { payment: strange })];
  for (const answer of [known, unknown, await ask(`${digest}/token`, {})]) {
    expect(answer).toMatchObject({ status: 401, json: { code: 'payer_signature_required' } });
    expect(Object.keys(answer.json)).toEqual(['error', 'code', 'challenge', 'expires_at', 'typed_data']);
  }
  const forged = { payment, signed: await signed(known, stranger) };
  expect(await ask('token', forged)).toMatchObject({
    status: 401,
    json: { code: 'invalid_payer_signature' },
  });
  const own = { payment, signed: await signed(known) };
  const opened = { quote_digest: digest, receipt_token: token };
  expect(await ask('token', own)).toMatchObject({ status: 200, json: opened });
  expect((await ask('token', { payment: strange, signed: await signed(unknown) })).status).toBe(404);
  const byDigest = { signed: await signed(await ask(`${digest}/token`, {})) };
  expect(await ask(`${digest}/token`, byDigest)).toMatchObject({ status: 200, json: opened });

  // a signature is for one payment, at one gateway, until it expires
  const again = { status: 401, json: { code: 'payer_signature_required' } };
  expect(await ask(`${digest}/token`, own)).toMatchObject({ status: 400 });
  expect(await ask(`${digest}/token`, { signed: own.signed })).toMatchObject(again);
  expect(await ask('token', { payment: strange, signed: own.signed })).toMatchObject(again);
  const later = { ...own.signed, expires_at: own.signed.expires_at + 1 };
  expect(await ask('token', { payment, signed: later })).toMatchObject(again);
  const elsewhere = await startTestGateway({ database: await createDatabase(), ...documented });
  const foreign = await elsewhere.post('/x402/receipts/token', {
    body: JSON.stringify({ payment }),
    headers: { 'content-type': 'application/json' },
  });
  expect(await ask('token', { payment, signed: await signed(foreign) })).toMatchObject(again);
  await database.moveClock(301);
  await gateway.post(job, { body: 'x' });
  expect(await ask('token', own)).toMatchObject(again);
});

test('a contract wallet gets the token of its receipt for a signature that its contract accepts', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
  await chain.mint(wallet, 10_000_000n);
  const paid = await payFor(gateway, job, 'x', { signed: { from: wallet } });
  expect(paid.status).toBe(202);
  const path = `/x402/receipts/${paid.json.quote_digest}/token`;
  const headers = { 'content-type': 'application/json' };
  const { json } = await gateway.post(path, { body: '{}', headers });
  const { challenge, expires_at } = json;
  for (const [account, status] of [
    [payer, 200],
    [privateKeyToAccount(generatePrivateKey()), 401],
  ] as const) {
    const signature = await account.signTypedData(json.typed_data);
    const body = JSON.stringify({ signed: { challenge, expires_at, signature } });
    expect((await gateway.post(path, { body, headers })).status).toBe(status);
  }
});

const dearJob =
  '[job_prices.1]\n0 = "9000000000000000"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"';

test.each(['a restart', 'a reload'])(
  'over %s a version 1 payment keeps the price of a quote until the quote expires',
  async (change) => {
    const database = await createDatabase();
    let gateway = await startTestGateway({ database, ...documented });
    const [early, late] = [await signV1(gateway), await signV1(gateway)];
    const dear = { database, chain, jobs: dearJob };
    if (change === 'a reload') await gateway.reload(await testConfig(dear));
    else {
      await gateway.stop();
      gateway = await startTestGateway(dear);
    }
    const kept = await gateway.post(job, { body: 'x', headers: v1Header(early.v1) });
    expect(kept).toMatchObject({ status: 202, json: { payment: { amount: String(price) } } });
    const events = await allEvents(database.db);
    expect(events.findLast(({ type }) => type === 'quote_issued')?.data).toMatchObject({
      price_wei: '1000000000000000',
    });
    await database.moveClock(311);
    await gateway.post(job, { body: 'x' });
    const over = await gateway.post(job, { body: 'x', headers: v1Header(late.v1) });
    expect(over.status).toBe(402);
  },
);

/** Without the first token. */
function secondOnly(text: string): string {
  const [first = ''] = text.match(/\[\[accepted_tokens\]\]\n(?:.+\n)+/g) ?? [];
  return text.replace(first, '');
}

test('a version 1 payment keeps the price of another gateway, until its token is withdrawn or its quotes are revoked', async () => {
  const database = await createDatabase();
  const dear = { database, chain, jobs: dearJob };
  const changed = await startTestGateway(dear);
  const gateway = await startTestGateway({ database, ...documented });
  const pay = ({ v1 }: Awaited<ReturnType<typeof signV1>>) =>
    changed.post(job, { body: 'x', headers: v1Header(v1) });
  const [early, late, again] = [await signV1(gateway), await signV1(gateway), await signV1(gateway)];
  expect(await pay(early)).toMatchObject({ status: 202, json: { payment: { amount: String(price) } } });

  // the token is not accepted for a moment: its earlier prices end, in the other gateway as well
  await gateway.reload(await testConfig({ database, chain, change: secondOnly }));
  await gateway.reload(await testConfig(dear));
  const mismatch = { status: 402, json: { reason: 'authorization_value_mismatch' } };
  expect(await pay(late)).toMatchObject(mismatch);

  // offered again, it can be paid again; a revocation ends it
  await gateway.reload(await testConfig({ database, chain }));
  await gateway.reload(await testConfig(dear));
  expect((await pay(again)).status).toBe(202);
  const lane = laneOn(database);
  onTestFinished(() => lane.close());
  // after the second of the last quote, which may be this one
  const beforeSecs = Math.floor(Date.now() / 1_000) + 1;
  await eventually(async () =>
    expect(await revokeQuotes({ ...database, lane }, { beforeSecs, operator: 'ada' })).toEqual({
      kind: 'revoked',
    }),
  );
  expect(await pay(late)).toMatchObject(mismatch);
});

/** The second token's rate is from a source that never answers. */
const silentSource = `[[accepted_tokens.rates]]\nkind = "http"\nurl = "http://127.0.0.1:1/"\npointer = "/rate"\n`;
const withoutSecondRate = (text: string): string => {
  const [head = '', first = '', second = ''] = text.split(/(?=\[\[accepted_tokens\]\]\n)/);
  return head + first + second.replace('eip712_version = "2"\n', (line) => line + silentSource);
};

test('a version 1 payment in the second token is taken in that token, at the price that it was offered: its signature says which it means, also of a contract wallet', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
  await chain.mint(wallet, 10_000_000n, chain.secondToken);
  const [own, ofContract, early, late, earlyOfContract] = [
    await signV1(gateway, { option: 1 }),
    await signV1(gateway, { option: 1, from: wallet }),
    await signV1(gateway, { option: 1 }),
    await signV1(gateway, { option: 1 }),
    await signV1(gateway, { option: 1, from: wallet }),
  ];
  const pay = ({ v1 }: Awaited<ReturnType<typeof signV1>>) =>
    gateway.post(job, { body: 'x', headers: v1Header(v1) });
  const paid = { status: 202, json: { payment: { symbol: 'EURC', amount: String(price) } } };
  expect(await pay(own)).toMatchObject(paid);
  expect(await pay(ofContract)).toMatchObject(paid);
  const dear = { database, chain, jobs: dearJob };
  await gateway.reload(await testConfig(dear));
  expect(await pay(early)).toMatchObject(paid);
  expect(await pay(earlyOfContract)).toMatchObject(paid);
  await gateway.reload(await testConfig({ ...dear, change: withoutSecondRate }));
  expect(await pay(late)).toMatchObject(paid);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
