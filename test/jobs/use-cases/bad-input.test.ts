import { createConnection } from 'node:net';
import { expect, test } from 'vitest';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo, startTestGateway, startWithDatabase } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, type Payment, payer, signOffer, type SignOptions } from '../../support/payer.ts';

const chain = useChain();
const documented = { chain, isDocumented: true };
const job = '/x402/jobs/1/0';
const secsFromNow = (secs: number) => String(Math.floor(Date.now() / 1_000) + secs);

type Change = (payment: Payment) => unknown;
const authorization =
  (change: Record<string, unknown>): Change =>
  (payment) => ({
    ...payment,
    payload: { ...payment.payload, authorization: { ...payment.payload.authorization, ...change } },
  });
const accepted =
  (change: Record<string, unknown>): Change =>
  (payment) => ({
    ...payment,
    accepted: { ...payment.accepted, ...change },
  });

/**
 * Each payment is honestly signed over what `signed` says when its test runs, then changed: one for each check that a
 * payment passes. What else each check refuses is in test/payments/rules/decode-payment.test.ts and payment.test.ts.
 */
const badPayments: readonly [
  name: string,
  reason: string,
  change: Change,
  signed?: () => NonNullable<SignOptions['signed']>,
][] = [
  ['another amount in the offer', 'matches_no_option', accepted({ amount: '1' })],
  ['no quote', 'names_no_quote', accepted({ extra: {} })],
  [
    'a quote that was never issued',
    'unknown_quote',
    accepted({ extra: { quoteDigest: `0x${'1'.repeat(64)}` } }),
  ],
  [
    'one about to expire',
    'authorization_expires_too_soon',
    (p) => p,
    () => ({ validBefore: secsFromNow(20) }),
  ],
  ['hex where decimals belong', 'not_a_decimal', authorization({ value: '0x31ce00' })],
  [
    'a signature of another account',
    'invalid_exact_evm_signature',
    authorization({ from: privateKeyToAccount(devnetKeys.operator).address }),
  ],
  ['a list', 'undecodable_payment', (p) => [p]],
];

test('a payment with anything wrong in it is refused with the reason, recorded and not charged', async () => {
  const { database, gateway } = await startWithDatabase({ ...documented });
  const before = await chain.balance(payTo);
  for (const [name, reason, change, signed] of badPayments) {
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const payment = change(await signOffer(offer, signed ? { signed: signed() } : {}));
    const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
    const { status, json } = answer;
    expect([name, status, json.code, json.reason]).toEqual([name, 402, 'payment_invalid', reason]);
    expect(offerOf(answer).accepts[0]?.extra['quoteDigest']).toBe(json.quote_digest);
  }
  expect(await chain.balance(payTo)).toBe(before);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const reasons = events.flatMap((event) => (event.type === 'payment_rejected' ? [event.data.reason] : []));
  expect(reasons).toEqual(badPayments.map(([, reason]) => reason));
  expect(events.some(({ type }) => type === 'settlement_started')).toBe(false);
});

test("oversized headers are 431 in the gateway's error format", async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const { port } = new URL(gateway.url);
  const raw = await new Promise<string>((resolve, reject) => {
    let text = '';
    const socket = createConnection({ host: '127.0.0.1', port: Number(port) }, () => {
      socket.write(`POST ${job} HTTP/1.1\r\nHost: x\r\nPAYMENT-SIGNATURE: ${'A'.repeat(80_000)}\r\n\r\n`);
    });
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('close', () => resolve(text));
    socket.on('error', (error) => (text ? resolve(text) : reject(error)));
  });
  expect(raw).toMatch(/^HTTP\/1\.1 431 /);
  expect(raw).toMatch(/^x-content-type-options: nosniff\r$/im);
  expect(JSON.parse(raw.split('\r\n\r\n')[1] ?? '')).toMatchObject({ code: 'headers_too_large' });
});

test('a disabled job is 403, with a payment and without, and on its price', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const before = await chain.balance(payTo);
  const disabled = { status: 403, json: { code: 'x402_disabled' } };
  expect(await gateway.post('/x402/jobs/1/2', { body: 'x' })).toMatchObject(disabled);
  const headers = header(await signOffer(offer));
  expect(await gateway.post('/x402/jobs/1/2', { body: 'x', headers })).toMatchObject(disabled);
  expect(await gateway.get('/x402/jobs/1/2/price')).toMatchObject(disabled);
  expect(await chain.balance(payTo)).toBe(before);
});

test('a quote of one job does not pay for another', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), ...documented });
  const payment = await signOffer(offerOf(await gateway.post('/x402/jobs/1/1', { body: 'x' })));
  const before = await chain.balance(payTo);
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject({ status: 402, json: { reason: 'unknown_quote' } });
  expect(await chain.balance(payTo)).toBe(before);
});

test('a body over the limit is 413 and recorded; one at the limit is accepted', async () => {
  const { database, gateway } = await startWithDatabase({
    ...documented,
    tables: '[limits]\nmax_body_bytes = 1024\nrequests_per_minute = 0',
  });
  const large = await gateway.post(job, { body: 'x'.repeat(1_025) });
  expect(large).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
  expect((await gateway.post(job, { body: 'x'.repeat(1_024) })).status).toBe(402);
  const events = await allEvents(database.db);
  expect(events[0]).toMatchObject({ type: 'request_refused', data: { code: 'body_too_large' } });
});

test('a request that stops in the middle of its body is not charged and appends nothing', async () => {
  const { gateway } = await startWithDatabase({ ...documented });
  const payment = await signOffer(offerOf(await gateway.post(job, { body: 'the whole body' })));
  const before = await chain.balance(payTo);
  const value = header(payment)['payment-signature'] ?? '';
  await new Promise<void>((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port: Number(new URL(gateway.url).port) }, () => {
      socket.write(
        `POST ${job} HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\nPAYMENT-SIGNATURE: ${value}\r\n\r\nthe who`,
        () => socket.destroy(),
      );
    });
    socket.on('close', () => resolve());
  });
  expect((await gateway.post(job, { body: 'the whole body', headers: header(payment) })).status).toBe(202);
  expect((await chain.balance(payTo)) - before).toBe(3_264_000n);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ quoted: 1, accepted: 1 });
});

const from = (ip: string) => ({ 'x-forwarded-for': ip });

test('a client over its budget of unpaid requests gets a 429; a client that pays does not', async () => {
  const { gateway } = await startWithDatabase({
    ...documented,
    tables: '[limits]\nrequests_per_minute = 5',
  });
  const asked = [];
  for (let i = 0; i < 7; i++)
    asked.push(await gateway.post(job, { body: 'x', headers: from('203.0.113.7') }));
  expect(asked.map(({ status }) => status)).toEqual([402, 402, 402, 402, 402, 429, 429]);
  expect(asked.at(-1)).toMatchObject({ json: { code: 'rate_limited' } });
  expect(Number(asked.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
  const others = await gateway.post(job, { body: 'x', headers: from('203.0.113.8') });
  const paid = await gateway.post(job, {
    body: 'x',
    headers: { ...from('203.0.113.9'), ...header(await signOffer(offerOf(others))) },
  });
  expect(paid.status).toBe(202);
  // malformed requests for a receipt's token count like any others
  const ofReceipts = await Promise.all(
    ['/x402/receipts/token', `/x402/receipts/0x${'0'.repeat(64)}/token`].flatMap((path) =>
      Array.from({ length: 4 }, () =>
        gateway.post(path, {
          body: '{"payment":1,"signed":1}',
          headers: { ...from('203.0.113.10'), 'content-type': 'application/json' },
        }),
      ),
    ),
  );
  expect(ofReceipts.filter(({ status }) => status === 429)).toHaveLength(3);
});

test("an unknown path is 404 and a known path with another method 405, in the gateway's error format", async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  expect(await gateway.get('/nowhere')).toMatchObject({ status: 404, json: { code: 'not_found' } });
  const wrong = {
    status: 405,
    json: { code: 'method_not_allowed', error: expect.stringContaining('Allow') },
  };
  for (const [path, allow] of [
    ['/x402/jobs/1/0?a=b', 'POST'],
    ['/runner/leases', 'POST'],
    ['/runner/calls/7/complete', 'POST'],
  ] as const) {
    const answer = await gateway.get(path);
    expect(answer).toMatchObject(wrong);
    expect(answer.headers.get('allow')).toBe(allow);
  }
  for (const path of ['/x402/jobs/1/0/price', '/x402/ready', '/status', '/openapi.json']) {
    const answer = await gateway.post(path);
    expect(answer).toMatchObject(wrong);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
  }
});

test('no text of a client or of its payment reaches the log', async () => {
  const lines: string[] = [];
  const { pino } = await import('pino');
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const { database, gateway } = await startWithDatabase({ chain, logger });
  const payment = await signOffer(offerOf(await gateway.post(job, { body: 'secret words' })), {
    account: payer,
  });
  const answer = await gateway.post(job, {
    body: 'secret words',
    headers: { ...header(payment), authorization: 'Bearer sk-secret', cookie: 'session=secret' },
  });
  expect(answer.status).toBe(202);
  const text = lines.join('');
  const { offerSecret } = payment.accepted.extra;
  expect(offerSecret).toMatch(/^[\w-]{43}$/);
  const secrets = [
    'secret words',
    'sk-secret',
    payment.payload.signature.slice(4, 40),
    answer.json.receipt_token,
  ];
  for (const secret of [...secrets, offerSecret]) expect(text).not.toContain(secret);
  expect(JSON.stringify(await allEvents(database.db))).not.toContain(offerSecret);
  const requests = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'request');
  expect(requests).toMatchObject([
    { method: 'POST', status: 402, code: 'payment_required' },
    { method: 'POST', status: 202, quote_digest: answer.json.quote_digest, call_id: answer.json.call_id },
  ]);
});
