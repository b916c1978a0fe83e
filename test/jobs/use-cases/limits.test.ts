import http from 'node:http';
import { expect, test } from 'vitest';
import { readCounters } from '../../../src/ledger/store/counters.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, startWithDatabase } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, type Offer, offerOf, quoteAndSign, signOffer } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const keyed = {
  top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
  env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
};
const tight = '[limits]\nrequests_per_minute = 5\nmax_body_bytes = 1000';

test('oversized bodies and used payments are recorded only within the budget', async () => {
  const { database, gateway } = await startWithDatabase({ chain, tables: tight });
  const payment = await quoteAndSign(gateway, job, 'mine');
  expect((await gateway.post(job, { body: 'mine', headers: header(payment) })).status).toBe(202);
  const events = (await allEvents(database.db)).length;
  for (let i = 0; i < 20; i++) {
    const replayed = await gateway.post(job, { body: `other ${i}`, headers: header(payment) });
    expect(replayed.status).toBe(409);
    const large = await gateway.post(job, { body: 'x'.repeat(2_000) });
    expect(large.status).toBe(413);
  }
  const sums = (await allEvents(database.db)).slice(events).filter(({ type }) => type === 'refusals_counted');
  expect((await allEvents(database.db)).length - events - sums.length).toBeLessThanOrEqual(5);
  // within about a second the counters include those over the budget
  await eventually(async () =>
    expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({
      accepted: 1,
      replay_denied: 20,
      payment_replay_denied: 20,
      nonce_replay_denied: 0,
    }),
  );
});

test('dry runs over the budget are counted, and a stopping gateway records the last sums', async () => {
  const { database, gateway } = await startWithDatabase({ chain, tables: tight });
  const statuses = new Map<number, number>();
  for (let i = 0; i < 30; i++) {
    const { status } = await gateway.post(`${i % 2 === 0 ? job : '/x402/jobs/7/7'}/auth-dry-run`, {
      body: 'x',
    });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect(Object.fromEntries(statuses)).toEqual({ 200: 3, 404: 15, 429: 12 });
  await gateway.stop();
  const { counters } = await readCounters(database.db);
  expect(counters).toMatchObject({ dry_run: 30, dry_run_allowed: 3, dry_run_denied: 27, denied: 0 });
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type === 'dry_run_denied')).toHaveLength(0);
});

const statusesOf = (answers: readonly { readonly status: number }[]): Record<number, number> =>
  Object.fromEntries(
    Map.groupBy(answers, ({ status }) => status)
      .entries()
      .map(([status, all]) => [status, all.length]),
  );

test('each request is charged to its budget before it waits for anything: a hundred simultaneous ones get no more quotes', async () => {
  const { database, gateway } = await startWithDatabase({ chain, tables: tight });
  const answers = await Promise.all(Array.from({ length: 100 }, () => gateway.post(job, { body: 'x' })));
  expect(statusesOf(answers)).toEqual({ 402: 5, 429: 95 });
  expect((await allEvents(database.db)).filter(({ type }) => type === 'quote_issued')).toHaveLength(5);
});

test('payments that are settled cost no budget', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain, tables: tight });
  const payments = [];
  for (let i = 0; i < 4; i++) payments.push(await quoteAndSign(gateway, job, 'x'));
  for (const payment of payments) {
    expect((await gateway.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
  }
  expect((await gateway.post(job, { body: 'x' })).status).toBe(402);
  expect((await gateway.post(job, { body: 'x' })).status).toBe(429);
});

const from = (address: string) => ({ 'x-forwarded-for': address });

test('a payment that ends as settlement_pending is charged to its client address and to its payer', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    facilitatorUrl: proxy.url,
    tables: '[limits]\nrequests_per_minute = 3',
  });
  const offers = await Promise.all(
    [1, 2, 3, 4].map((client) => gateway.post(job, { body: 'x', headers: from(`10.0.0.${client}`) })),
  );
  const payments = await Promise.all(offers.map((offer) => signOffer(offerOf(offer))));
  proxy.faults.settle = 'server_error';
  const pay = (index: number, address: string) =>
    gateway.post(job, { body: 'x', headers: { ...header(payments[index]!), ...from(address) } });
  const pending = { status: 503, json: { code: 'settlement_pending' } };
  expect(await pay(0, '10.0.0.1')).toMatchObject(pending);
  expect(await pay(1, '10.0.0.1')).toMatchObject(pending);
  // the client address has used its budget, and its payments are still answered
  expect((await gateway.post(job, { body: 'x', headers: from('10.0.0.1') })).status).toBe(429);
  expect(await pay(0, '10.0.0.1')).toMatchObject(pending);
  expect(await pay(2, '10.0.0.9')).toMatchObject(pending);
  // the payer has used its budget, from wherever it comes
  expect((await pay(3, '10.0.0.8')).status).toBe(429);
});

test('all clients together get no more quotes than the gateway may record: the others get 503, and nothing is recorded', async () => {
  const { database, gateway } = await startWithDatabase({
    chain,
    constants: { limits: { quotesPerSecond: 5 } },
  });
  const ask = (client: number) =>
    gateway.post(job, { body: 'x', headers: { 'x-forwarded-for': `10.0.0.${client}` } });
  const startedAt = performance.now();
  const answers = await Promise.all(Array.from({ length: 100 }, (_, client) => ask(client)));
  const secs = (performance.now() - startedAt) / 1_000;
  const refused = answers.filter(({ status }) => status === 503);
  expect(refused[0]?.json.code).toBe('overloaded');
  expect(refused[0]?.headers.get('retry-after')).toBe('1');
  const { 402: quoted = 0 } = statusesOf(answers);
  expect(quoted).toBeGreaterThanOrEqual(5);
  expect(quoted).toBeLessThanOrEqual(10 + 5 * secs);
  expect(await allEvents(database.db)).toHaveLength(quoted);
});

test('a summarised quote is paid on its offered terms, counted once, and has no receipt before; a stopping gateway records the last sum', async () => {
  const database = await createDatabase();
  // nothing is left of what may be recorded
  await database.pool.query(`select tollbook.take_event_allowance('quote', 1000, 5, 1000)`);
  const startedAt = performance.now();
  const gateway = await startTestGateway({ database, chain, ...keyed });
  const asked = await Promise.all(Array.from({ length: 100 }, () => gateway.post(job, { body: 'x' })));
  const offers = asked.map(offerOf);
  const [paid, unpaid] = offers.filter(isSummarised);
  const receipt = await gateway.get(`/x402/receipts/${digestOf(paid)}`);
  expect(receipt).toMatchObject({ status: 404, json: { code: 'receipt_not_found' } });
  expect(receipt.json.error).toMatch(/summarised.* This request charged nothing/);
  const recordable = { ...paid!, accepts: paid!.accepts.map((accept) => withoutSummary(accept)) };
  const forged = await gateway.post(job, { body: 'x', headers: header(await signOffer(recordable)) });
  expect(forged).toMatchObject({ status: 402, json: { reason: 'unknown_quote' } });
  const headers = header(await signOffer(paid!));
  const answers = await Promise.all([1, 2].map(() => gateway.post(job, { body: 'x', headers })));
  for (const answer of answers)
    expect(answer).toMatchObject({ status: 202, json: { receipt: digestOf(paid) } });
  expect((await gateway.get(`/x402/receipts/${digestOf(paid)}`)).status).toBe(200);
  await gateway.stop();
  const { counters } = await readCounters(database.db);
  expect(counters).toMatchObject({ quoted: 101, accepted: 1, settled: 1 });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ stream }) => stream === digestOf(unpaid))).toEqual([]);
  const own = events.find(({ stream, version }) => stream === digestOf(paid) && version === 1);
  expect(own).toMatchObject({ type: 'quote_issued', data: { summarised: true } });
  const secs = (performance.now() - startedAt) / 1_000;
  expect(events.filter(({ type }) => type === 'quote_issued').length).toBeLessThanOrEqual(1 + 5 * (1 + secs));
});

function isSummarised({ accepts: [first] }: Offer): boolean {
  return Object.hasOwn((first?.extra['quote'] ?? {}) as object, 'summarised');
}

function digestOf(offer: Offer | undefined): string {
  return offer?.accepts[0]?.extra['quoteDigest'] ?? '';
}

function withoutSummary(accept: Offer['accepts'][number]): Offer['accepts'][number] {
  const { summarised: _, ...quote } = accept.extra['quote'] as unknown as Record<string, unknown>;
  return { ...accept, extra: { ...accept.extra, quote: quote as never } };
}

test('a flood of payments that are rejected is counted, and fills the ledger no more than unpaid quotes do', async () => {
  const database = await createDatabase();
  await database.pool.query(`select tollbook.take_event_allowance('rejected_payment', 1000, 5, 1000)`);
  // on a busy machine the allowance of each second would else cover them all
  const constants = { limits: { quoteEventsPerSec: 1 } };
  const gateway = await startTestGateway({ database, chain, ...keyed, constants });
  const send = () => gateway.post(job, { body: 'x', headers: { 'payment-signature': 'AAAA' } });
  const answers = await Promise.all(Array.from({ length: 100 }, send));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([402]));
  await gateway.stop();
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const counted = events.reduce(
    (sum, { type, data }) => sum + (type === 'refusals_counted' ? (data.counts.payment_rejected ?? 0) : 0),
    0,
  );
  expect(counted + events.filter(({ type }) => type === 'payment_rejected').length).toBe(100);
  expect(counted).toBeGreaterThan(50);
});

test('a job that does not exist is 404 on each of its endpoints, whatever else is wrong', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain, tables: tight });
  const payment = header(await quoteAndSign(gateway, job, 'x'));
  const large = 'x'.repeat(2_000);
  const garbled = { 'content-type': `text/${'x'.repeat(200)}` };
  const wrong: Parameters<typeof gateway.post>[1][] = [
    { body: 'x' },
    { body: large },
    { body: 'x', headers: garbled },
    { body: 'x', headers: { ...garbled, ...payment } },
    { body: large, headers: { ...garbled, 'payment-signature': 'AAAA' } },
  ];
  const refused = { status: 404, json: { code: 'job_not_found' } };
  // more requests than the budget allows
  for (const id of ['7/7', 'x/y', `${2n ** 60n}/0`]) {
    expect(await gateway.get(`/x402/jobs/${id}/price`)).toMatchObject(refused);
    for (const request of wrong) {
      expect(await gateway.post(`/x402/jobs/${id}`, request)).toMatchObject(refused);
      expect(await gateway.post(`/x402/jobs/${id}/auth-dry-run`, request)).toMatchObject(refused);
    }
  }
});

test.each([
  ['longer than 200 characters', `text/${'x'.repeat(200)}`],
  ['not ASCII', 'text/plän'],
])(
  'a content type that is %s is refused before payment: no runner could be given it',
  async (_, contentType) => {
    const gateway = await startTestGateway({ database: await createDatabase(), chain });
    const status = await new Promise((resolve, reject) => {
      const request = http.request(gateway.url + job, {
        method: 'POST',
        headers: { 'content-type': contentType },
      });
      request.on('response', (response) => resolve(response.resume().statusCode));
      request.on('error', reject);
      request.end('x');
    });
    expect(status).toBe(400);
  },
);

test('requests beyond the limit of concurrent requests get a Retry-After', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    facilitatorUrl: proxy.url,
    constants: { limits: { maxInFlightRequests: 2 } },
  });
  const payments = [await quoteAndSign(gateway, job, 'x'), await quoteAndSign(gateway, job, 'x')];
  proxy.faults.verify = {
    change: async (answer) => {
      await held;
      return answer;
    },
  };
  const paying = payments.map((payment) => gateway.post(job, { body: 'x', headers: header(payment) }));
  await eventually(() => expect(proxy.seen.filter((operation) => operation === 'verify')).toHaveLength(2));
  const busy = await gateway.post(job, { body: 'x' });
  expect(busy).toMatchObject({ status: 503, json: { code: 'overloaded' } });
  release();
  expect((await Promise.all(paying)).map(({ status }) => status)).toEqual([202, 202]);
  expect((await gateway.post(job, { body: 'x' })).status).toBe(402);
});

test('a gateway that cannot listen fails with a reason and stops its workers', async () => {
  const first = await startTestGateway({ database: await createDatabase(), chain });
  const { port } = new URL(first.url);
  const database = await createDatabase();
  const connections = () =>
    database.asOwner(async (owner) => {
      const { rows } = await owner.query<{ count: string }>(
        `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tollbook'`,
      );
      return Number(rows[0]?.count);
    });
  await expect(startTestGateway({ database, chain, bind: `127.0.0.1:${port}` })).rejects.toThrow(
    /is in use by another program/,
  );
  await eventually(async () => expect(await connections()).toBe(0));
});

test('while the ledger is unavailable requests are refused, nothing is charged, and a shutdown does not wait forever', async () => {
  const { database, gateway } = await startWithDatabase({ chain, top: 'shutdown_grace_secs = 1' });
  const payment = await quoteAndSign(gateway, job, 'x');
  const before = await chain.balance(payTo);
  await database.away(true);
  const unpaid = await gateway.post(job, { body: 'x' });
  expect(unpaid).toMatchObject({ status: 503, json: { code: 'ledger_unavailable' } });
  const paying = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(paying).toMatchObject({ status: 503, json: { code: 'ledger_unavailable' } });
  expect(await chain.balance(payTo)).toBe(before);
  await gateway.stop();
  await database.away(false);
  const restarted = await startTestGateway({ database, chain });
  expect((await restarted.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
});
