import { createConnection } from 'node:net';
import { expect, test } from 'vitest';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo, startTestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, type Payment, payer, signOffer, type SignOptions } from '../../support/payer.ts';

const chain = useChain();
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
const other = `0x${'7'.repeat(40)}`;

/** Each payment is honestly signed over what `signed` says when its test runs, then changed: reason → what is wrong with it. */
const badPayments: readonly [
  name: string,
  reason: string,
  change: Change,
  signed?: () => NonNullable<SignOptions['signed']>,
][] = [
  ['another network', 'matches_no_option', accepted({ network: 'eip155:1' })],
  ['a network that is none', 'undecodable_payment', accepted({ network: 'base-sepolia' })],
  ['another asset', 'matches_no_option', accepted({ asset: other })],
  ['another payee in the offer', 'matches_no_option', accepted({ payTo: other })],
  ['another amount in the offer', 'matches_no_option', accepted({ amount: '1' })],
  ['another scheme', 'matches_no_option', accepted({ scheme: 'upto' })],
  ['no quote', 'names_no_quote', accepted({ extra: {} })],
  [
    'a quote that was never issued',
    'unknown_quote',
    accepted({ extra: { quoteDigest: `0x${'1'.repeat(64)}` } }),
  ],
  ['another payee', 'recipient_mismatch', (p) => p, () => ({ to: other })],
  ['too little', 'authorization_value_mismatch', (p) => p, () => ({ value: '3263999' })],
  ['too much', 'authorization_value_mismatch', (p) => p, () => ({ value: '3264001' })],
  ['an expired authorization', 'authorization_expired', (p) => p, () => ({ validBefore: secsFromNow(-10) })],
  [
    'one about to expire',
    'authorization_expires_too_soon',
    (p) => p,
    () => ({ validBefore: secsFromNow(20) }),
  ],
  [
    'one that is not yet valid',
    'authorization_not_yet_valid',
    (p) => p,
    () => ({ validAfter: secsFromNow(600) }),
  ],
  [
    'one valid absurdly long',
    'authorization_valid_too_long',
    (p) => p,
    () => ({ validBefore: secsFromNow(86_400) }),
  ],
  ['hex where decimals belong', 'not_a_decimal', authorization({ value: '0x31ce00' })],
  ['leading zeros', 'not_a_decimal', authorization({ value: '03264000' })],
  ['a sign', 'not_a_decimal', authorization({ value: '+3264000' })],
  ['a number with an exponent', 'not_a_decimal', authorization({ validAfter: '1e3' })],
  ['numbers instead of strings', 'undecodable_payment', authorization({ value: 3_264_000 })],
  ['junk keys', 'unknown_payload_field', authorization({ junk: 'x' })],
  ['a short nonce', 'undecodable_payment', authorization({ nonce: '0x12' })],
  [
    'a cut signature',
    'malformed_signature',
    (p) => ({ ...p, payload: { ...p.payload, signature: p.payload.signature.slice(0, -2) } }),
  ],
  [
    'a signature of another account',
    'invalid_exact_evm_signature',
    authorization({ from: privateKeyToAccount(devnetKeys.operator).address }),
  ],
  ['version 3', 'undecodable_payment', (p) => ({ ...p, x402Version: 3 })],
  ['a list', 'undecodable_payment', (p) => [p]],
  ['null', 'undecodable_payment', () => null],
];

test('a payment with anything wrong in it is refused with the reason, recorded and not charged', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
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

test('a nonce in upper case is refused before it is claimed, and the honest spelling still pays', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const payment = await signOffer(offerOf(await gateway.post(job, { body: 'x' })));
  const nonce = `0x${payment.payload.authorization.nonce.slice(2).toUpperCase()}`;
  const shouted = authorization({ nonce })(payment);
  const refused = await gateway.post(job, { body: 'x', headers: header(shouted) });
  expect(refused).toMatchObject({ status: 402, json: { reason: 'nonce_not_lower_case' } });
  expect((await gateway.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
});

const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');

test('any value other than a payment in place of one is a 402 with a new quote', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  for (const [name, value, reason] of [
    ['garbage', '!!!!', 'undecodable_payment'],
    ['an empty header', '', 'undecodable_payment'],
    ['truncated base64', base64('{"x402Version":2').slice(0, -3), 'undecodable_payment'],
    ['text that is not UTF-8', base64(Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)), 'undecodable_payment'],
    ['base64 of no JSON', base64('hello'), 'undecodable_payment'],
    ['deep nesting', base64('['.repeat(4_000)), 'undecodable_payment'],
    ['a header of 20 kB', 'A'.repeat(20_000), 'payment_header_too_large'],
  ] as const) {
    const answer = await gateway.post(job, { body: 'x', headers: { 'payment-signature': value } });
    expect([name, answer.status, answer.json.reason]).toEqual([name, 402, reason]);
    expect(offerOf(answer).accepts).toHaveLength(2);
  }
});

test("oversized headers are 431 in the gateway's error format", async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
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

test('a job that cannot be, or is unknown, is 404 job_not_found, on its price too', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
  const refused = { status: 404, json: { code: 'job_not_found', error: expect.any(String) } };
  // beyond 2^53 and 2^32, spelt in another way, and unknown
  const ids = ['9007199254740992/0', '1/4294967296', '01/0', '1/-1', '1/0x0', 'one/zero', '7/7'];
  for (const id of ids) {
    expect([id, await gateway.post(`/x402/jobs/${id}`, { body: 'x' })]).toMatchObject([id, refused]);
    expect([id, await gateway.get(`/x402/jobs/${id}/price`)]).toMatchObject([id, refused]);
  }
  expect((await allEvents(database.db)).map(({ type, data }) => [type, data])).toMatchObject(
    ids.map(() => ['request_refused', { code: 'job_not_found' }]),
  );
});

test('a disabled job is 403, with a payment and without, and on its price', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
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
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const payment = await signOffer(offerOf(await gateway.post('/x402/jobs/1/1', { body: 'x' })));
  const before = await chain.balance(payTo);
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject({ status: 402, json: { reason: 'unknown_quote' } });
  expect(await chain.balance(payTo)).toBe(before);
});

test('a body over the limit is 413 and recorded; one at the limit is accepted', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({
    database,
    chain,
    tables: '[limits]\nmax_body_bytes = 1024\nrequests_per_minute = 0',
  });
  const large = await gateway.post(job, { body: 'x'.repeat(1_025) });
  expect(large).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
  expect((await gateway.post(job, { body: 'x'.repeat(1_024) })).status).toBe(402);
  const events = await allEvents(database.db);
  expect(events[0]).toMatchObject({ type: 'request_refused', data: { code: 'body_too_large' } });
});

test('a request that stops in the middle of its body is not charged and appends nothing', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
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

test('a payer without enough money is refused at verify and not charged', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const account = privateKeyToAccount(`0x${'42'.repeat(32)}`);
  const payment = await signOffer(offerOf(await gateway.post(job, { body: 'x' })), { account });
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject({
    status: 402,
    json: { code: 'payment_invalid', reason: expect.stringMatching(/balance|funds/) },
  });
});

const from = (ip: string) => ({ 'x-forwarded-for': ip });

test('a client over its budget of unpaid requests gets a 429; a client that pays does not', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain, tables: '[limits]\nrequests_per_minute = 5' });
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
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain, logger });
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
