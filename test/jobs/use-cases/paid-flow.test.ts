import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import { createPublicClient, type Hex, http } from 'viem';
import { expect, test } from 'vitest';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { startEchoRunner } from '../../../src/devnet/runner.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import {
  type Answer,
  payTo,
  runnerSecret,
  startTestGateway,
  testConfig,
  type TestGateway,
  type TestGatewayOptions,
  startWithDatabase,
} from '../../support/gateway.ts';
import { logLines } from '../../support/log-lines.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, payer, payFor, quoteAndSign, signOffer, v1Header } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const documented = { chain, isDocumented: true };
const job = '/x402/jobs/1/0';
const price = 3_264_000n;

async function echoRunner() {
  const runner = await startEchoRunner({ secret: runnerSecret, port: 0 });
  return { ...runner, [Symbol.asyncDispose]: () => runner.close() };
}

test('the official client pays, exactly the price moves, and the runner gets the bytes with their metadata', async () => {
  const database = await createDatabase();
  await using runner = await echoRunner();
  const gateway = await startTestGateway({ database, ...documented, runnerUrl: runner.url });
  const [before, paidBefore] = [await chain.balance(payTo), await chain.balance(payer.address)];
  const body = Buffer.from([0, 255, 10, 13, 128, 65]);
  const paid = await payForOneJob({
    gatewayUrl: gateway.url,
    privateKey: devnetKeys.payer,
    serviceId: 1,
    jobIndex: 0,
    body,
    contentType: 'application/x-odd',
  });
  expect((await chain.balance(payTo)) - before).toBe(price);
  expect(paidBefore - (await chain.balance(payer.address))).toBe(price);
  expect(paid.transaction).toMatch(/^0x[0-9a-f]{64}$/);
  const [call] = runner.calls;
  expect(call?.body).toEqual(body);
  expect(call?.metadata).toEqual({
    'x-x402-origin': 'x402',
    'x-net-trigger': 'x402',
    'x-x402-quote-digest': paid.body.quote_digest,
    'x-x402-payment-network': 'eip155:84532',
    'x-x402-payment-asset': chain.token,
    'x-x402-payment-token': 'USDC',
    'x-net-service-id': '1',
    'x-net-job-index': '0',
    'x-net-call-id': String(paid.body.call_id),
    'x-net-idempotency-key': expect.stringMatching(/^0x[0-9a-f]{64}$/) as string,
    'x-net-attempt': '1',
    'x-net-max-result-bytes': '1048576',
    'x-net-lease-id': expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    'x-net-progress-token': expect.stringMatching(/^[\w-]{43}$/) as string,
    'x-net-progress-url': `${gateway.url}/runner/calls/${paid.body.call_id}/progress`,
  });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.map(({ type }) => type)).toEqual([
    'quote_issued',
    'payment_verified',
    'settlement_started',
    'payment_settled',
    'enqueued',
    'delivered',
    'completed',
  ]);
  const { transaction } = paid;
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const { blockNumber } = await client.getTransactionReceipt({ hash: transaction as Hex });
  const block_time = Number((await client.getBlock({ blockNumber })).timestamp);
  expect(events[3]?.data).toMatchObject({ evidence: 'chain', transaction, block_time });
});

test('the 402 is what official clients read, names its quote, and is never cached', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const answer = await gateway.post(job, { body: 'x' });
  expect(answer.status).toBe(402);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const required = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
  expect(required).toMatchObject({ x402Version: 2, resource: { url: expect.stringContaining(job) } });
  expect(required.accepts).toMatchObject([
    { scheme: 'exact', network: 'eip155:84532', amount: String(price), asset: chain.token, payTo },
    { scheme: 'exact', network: 'eip155:84532', asset: chain.secondToken, payTo },
  ]);
  expect(answer.json).toMatchObject({
    code: 'payment_required',
    error: expect.any(String),
    accepts: expect.any(Array),
  });
  expect(required.accepts[0]?.extra?.['quoteDigest']).toBe(answer.json.quote_digest);
  const receipt = await gateway.get(`/x402/receipts/${answer.json.quote_digest}`);
  expect(receipt.json).toMatchObject({ state: 'quoted', paid: false, service_id: 1, job_index: 0 });
});

test('the 202 carries all that the contract promises', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const answer = await payFor(gateway, job);
  expect(answer.status).toBe(202);
  const digest = answer.json.quote_digest as string;
  expect(answer.json).toEqual({
    status: 'accepted',
    receipt: digest,
    quote_digest: digest,
    receipt_token: expect.stringMatching(/^[\w-]{43}$/),
    receipt_url: expect.stringContaining(`/x402/receipts/${digest}`),
    call_id: 1,
    service_id: 1,
    job_index: 0,
    payment: {
      network: 'eip155:84532',
      asset: chain.token,
      symbol: 'USDC',
      decimals: 6,
      amount: String(price),
      payer: payer.address.toLowerCase(),
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    },
  });
  expect(answer.headers.get('location')).toBe(`/x402/receipts/${digest}`);
  expect(answer.headers.get('idempotent-replayed')).toBeNull();
  expect(decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')).toMatchObject({
    success: true,
    transaction: answer.json.payment.transaction,
    network: 'eip155:84532',
  });
});

test('twenty simultaneous identical payments are one transfer, one call and twenty consistent answers', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const before = await chain.balance(payTo);
  const payment = await quoteAndSign(gateway, job, 'same');
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => gateway.post(job, { body: 'same', headers: header(payment) })),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  expect(new Set(answers.map(({ json }) => JSON.stringify(json))).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(19);
  expect((await chain.balance(payTo)) - before).toBe(price);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'enqueued')).toHaveLength(1);
});

test('simultaneous identical payments at two processes are one transfer and one call', async () => {
  const database = await createDatabase();
  const gateways = [
    await startTestGateway({ database, ...documented }),
    await startTestGateway({ database, ...documented }),
  ];
  const before = await chain.balance(payTo);
  const payment = await quoteAndSign(gateways[0]!, job, 'same');
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      gateways[i % 2]!.post(job, { body: 'same', headers: header(payment) }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  expect((await chain.balance(payTo)) - before).toBe(price);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'enqueued')).toHaveLength(1);
});

test('thirty simultaneous different payments are thirty transfers and calls in a sound ledger', async () => {
  const database = await createDatabase();
  await using runner = await echoRunner();
  const gateway = await startTestGateway({ database, ...documented, runnerUrl: runner.url });
  const before = await chain.balance(payTo);
  const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => payFor(gateway, job, `body ${i}`)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  expect(new Set(answers.map(({ json }) => json.call_id)).size).toBe(30);
  expect(new Set(answers.map(({ json }) => json.payment.transaction)).size).toBe(30);
  expect((await chain.balance(payTo)) - before).toBe(30n * price);
  await eventually(async () => expect((await gateway.get('/x402/stats')).json.counters.completed).toBe(30));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(new Set(runner.calls.map(({ body }) => body.toString())).size).toBe(30);
});

test('a replay that echoes the secret of its offer gets the whole answer; any other learns nothing that is not public', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const payment = await quoteAndSign(gateway, job, 'mine');
  const paid = await gateway.post(job, { body: 'mine', headers: header(payment) });
  expect(paid.json.receipt_token).toBeDefined();
  const { accepted, payload } = payment;
  const withExtra = (change: Record<string, unknown>) =>
    header({ ...payment, accepted: { ...accepted, extra: { ...accepted.extra, ...change } } });
  const other = await quoteAndSign(gateway, job, 'mine');
  const ofStrangers = [
    withExtra({ offerSecret: undefined }),
    withExtra({ offerSecret: undefined, quoteDigest: undefined }),
    withExtra({ offerSecret: accepted.extra['offerSecret']?.replaceAll(/[a-m]/g, 'z') }),
    withExtra({ offerSecret: paid.json.receipt_token }),
    withExtra({ offerSecret: other.accepted.extra['offerSecret'] }),
    header({ ...other, payload }),
    v1Header({ payload }),
  ];
  for (const headers of ofStrangers) {
    const answer = await gateway.post(job, { body: 'mine', headers });
    expect(answer).toMatchObject({ status: 202, text: '{"status":"accepted"}' });
    for (const name of ['location', 'payment-response', 'x-payment-response'])
      expect(answer.headers.get(name)).toBeNull();
  }
  const own = await gateway.post(job, { body: 'mine', headers: header(payment) });
  expect(own).toMatchObject({ status: 202, text: paid.text });
  expect(accepted.extra['offerSecret']).not.toBe(paid.json.receipt_token);
});

test('a known payment with another body is refused, and the first request keeps its call', async () => {
  const { gateway } = await startWithDatabase({ ...documented });
  const payment = await quoteAndSign(gateway, job, 'mine');
  expect((await gateway.post(job, { body: 'mine', headers: header(payment) })).status).toBe(202);
  const before = await chain.balance(payTo);
  for (const [path, body] of [
    [job, 'other'],
    ['/x402/jobs/1/1', 'mine'],
  ] as const) {
    const answer = await gateway.post(path, { body, headers: header(payment) });
    expect(answer).toMatchObject({ status: 409, json: { code: 'payment_replay' } });
  }
  expect(await chain.balance(payTo)).toBe(before);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, replay_denied: 2 });
});

test('one payment sent simultaneously for different bodies pays for one of them, and that one is called', async () => {
  const { gateway } = await startWithDatabase({ ...documented });
  for (let round = 0; round < 2; round++) {
    const before = await chain.balance(payTo);
    const payment = await quoteAndSign(gateway, job, 'mine');
    const bodies = ['mine', 'yours', 'theirs', 'ours'];
    const answers = await Promise.all(
      bodies.map((body) => gateway.post(job, { body, headers: header(payment) })),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 409, 409, 409]);
    expect((await chain.balance(payTo)) - before).toBe(price);
  }
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 2, replay_denied: 6 });
});

test('of two payments for one quote one is accepted, and the other is not charged', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const before = await chain.balance(payTo);
  const payments = [await signOffer(offer), await signOffer(offer), await signOffer(offer)];
  const answers = await Promise.all(
    payments.map((one) => gateway.post(job, { body: 'x', headers: header(one) })),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 409, 409]);
  expect(answers.filter(({ status }) => status === 409).map(({ json }) => json.code)).toEqual([
    'quote_in_use',
    'quote_in_use',
  ]);
  expect((await chain.balance(payTo)) - before).toBe(price);
});

test('a retry gets its own answer after the quote expired, the job was disabled, or its price was removed', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const payment = await quoteAndSign(gateway, job, 'mine');
  const first = await gateway.post(job, { body: 'mine', headers: header(payment) });
  expect(first.status).toBe(202);
  await database.moveClock(3_600);
  const expired = await gateway.post(job, { body: 'mine', headers: header(payment) });
  await gateway.stop();

  const disabled = await startTestGateway({
    database,
    chain,
    jobs: '[job_prices.1]\n0 = "7"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "disabled"',
  });
  const whileDisabled = await disabled.post(job, { body: 'mine', headers: header(payment) });
  const removed = await startTestGateway({ database, ...documented, jobs: '[job_prices.9]\n9 = "1"' });
  const whileRemoved = await removed.post(job, { body: 'mine', headers: header(payment) });
  for (const again of [expired, whileDisabled, whileRemoved]) {
    expect(again.status).toBe(202);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect({ ...again.json, receipt_url: '' }).toEqual({ ...first.json, receipt_url: '' });
  }
});

test('after a restart stats and receipts are the same', async () => {
  const database = await createDatabase();
  await using runner = await echoRunner();
  const gateway = await startTestGateway({ database, ...documented, runnerUrl: runner.url });
  const answer = await payFor(gateway, job);
  await gateway.post(job);
  const auth = { authorization: `Bearer ${answer.json.receipt_token}` };
  const receiptPath = answer.headers.get('location') ?? '';
  await eventually(async () => expect((await gateway.get(receiptPath)).json.state).toBe('completed'));
  const [stats, receipt] = [await gateway.get('/x402/stats'), await gateway.get(receiptPath, auth)];
  await gateway.stop();
  const restarted = await startTestGateway({ database, ...documented, runnerUrl: runner.url });
  expect((await restarted.get('/x402/stats')).json).toEqual(stats.json);
  expect((await restarted.get(receiptPath, auth)).json).toEqual(receipt.json);
  expect(receipt.json.result.body_base64).toBeDefined();
});

async function opens(gateway: TestGateway, answer: Answer): Promise<number> {
  const authorization = `Bearer ${answer.json.receipt_token}`;
  return (await gateway.get(answer.headers.get('location') ?? '', { authorization })).status;
}

test('receipt tokens stay valid while the receipt key is replaced in a fleet, in three steps, and end with the old key', async () => {
  const database = await createDatabase();
  const files = { old: 'the-receipt-key-before-the-change', new: 'the-receipt-key-after-the-change-' };
  const keys = (inUse: string, second?: string): Partial<TestGatewayOptions> => ({
    files,
    top: `receipt_key = ${JSON.stringify([inUse, second].flatMap((name) => (name ? [`file:${name}`] : [])))}`,
  });
  const steps = [keys('old'), keys('old', 'new'), keys('new', 'old'), keys('new')];
  const log = logLines();
  const options = { database, chain, logger: log.logger };
  const fleet = await Promise.all([0, 1].map(() => startTestGateway({ ...options, ...steps[0] })));
  const [ahead, behind] = fleet as [TestGateway, TestGateway];
  const paid = [await payFor(ahead, job)];
  for (const step of steps.slice(1, 3)) {
    // one gateway after the other: between them the fleet is mixed
    expect(await ahead.reload(await testConfig({ ...options, ...step }))).toEqual([]);
    paid.push(await payFor(ahead, job), await payFor(behind, job));
    for (const answer of paid)
      expect([await opens(ahead, answer), await opens(behind, answer)]).toEqual([200, 200]);
    expect(await behind.reload(await testConfig({ ...options, ...step }))).toEqual([]);
  }
  await ahead.reload(await testConfig({ ...options, ...steps[3] }));
  expect(await opens(behind, await payFor(ahead, job))).toBe(200);
  expect(await opens(ahead, paid[0]!)).toBe(401);
  // at most one line a minute, from both
  expect(log.lines.filter(({ secret }) => secret === 'receipt_key')).toHaveLength(1);
  expect(JSON.stringify(log.lines)).not.toContain('the-receipt-key');
});

test('a receipt shows its result only with its token', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const answer = await payFor(gateway, job);
  const path = answer.headers.get('location') ?? '';
  expect((await gateway.get(path)).json).not.toHaveProperty('result');
  expect(
    (await gateway.get(path, { authorization: `Bearer ${answer.json.receipt_token}` })).json,
  ).toHaveProperty('result');
  const wrong = await gateway.get(path, { authorization: 'Bearer nonsense' });
  expect(wrong).toMatchObject({ status: 401, json: { code: 'invalid_receipt_token' } });
  const unknown = await gateway.get(`/x402/receipts/0x${'1'.repeat(64)}`);
  expect(unknown).toMatchObject({ status: 404, json: { code: 'receipt_not_found' } });
});
