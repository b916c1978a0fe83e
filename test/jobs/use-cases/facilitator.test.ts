import { expect, onTestFinished, test, vi } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { privateKeyToAccount } from 'viem/accounts';
import type { Address } from '../../../src/base/values/primitives.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { refused as requestRefused } from '../../support/events.ts';
import { useChain } from '../../support/devnet.ts';
import { failsBeforeBroadcast, type Fault, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, startWithDatabase } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, payFor, quoteAndSign, signOffer } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;

/** Only a facilitator that hangs meets a time-out: a busy machine may need as long without it. */
async function behindProxy(top = '', constants: ConstantChanges = {}) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { database, gateway } = await startWithDatabase({
    chain,
    isDocumented: true,
    facilitatorUrl: proxy.url,
    top,
    constants,
  });
  return { proxy, database, gateway };
}

/** What the facilitator answers otherwise is read in test/payments/peers/facilitator/facilitator.test.ts. */
test('a facilitator that fails at verify is 503 and nothing is charged, and the same payment succeeds later', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const payment = await quoteAndSign(gateway, job, 'x');
  const before = await chain.balance(payTo);
  proxy.faults.verify = 'server_error';
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject({ status: 503, json: { code: 'facilitator_unavailable' } });
  expect(answer.headers.get('retry-after')).not.toBeNull();
  expect(await chain.balance(payTo)).toBe(before);
  expect((await allEvents(database.db)).at(-1)).toMatchObject({
    type: 'request_refused',
    data: { code: 'facilitator_unavailable' },
  });
  proxy.faults.verify = 'pass';
  expect((await gateway.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
});

/** A settle answer that names no transfer. */
const noTransfer = { success: false, transaction: '', network: 'eip155:84532' };
const unknowns: [name: string, fault: Fault, moves: boolean][] = [
  ['cuts the connection', 'cut_before', false],
  ['cuts the connection after settling', 'cut_after', true],
  [
    'claims a failure before broadcast after settling',
    { change: () => ({ ...noTransfer, errorReason: 'invalid_exact_evm_signature' }) },
    true,
  ],
];

test.each(unknowns)(
  'a facilitator that %s at settle is 503 settlement_pending, never 402, and leaves all that is needed to finish',
  async (_, fault, moves) => {
    const { proxy, database, gateway } = await behindProxy();
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    proxy.faults.settle = fault;
    const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
    const digest = payment.accepted.extra['quoteDigest'];
    expect(answer).toMatchObject({ status: 503, json: { code: 'settlement_pending', quote_digest: digest } });
    expect(answer.json.receipt_url).toContain(digest);
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect((await chain.balance(payTo)) - before).toBe(moves ? price : 0n);

    const settles = proxy.seen.filter((operation) => operation === 'settle').length;
    proxy.faults.settle = 'pass';
    const again = await gateway.post(job, { body: 'x', headers: header(payment) });
    expect(again).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(proxy.seen.filter((operation) => operation === 'settle')).toHaveLength(settles);

    const extra = { ...payment.accepted.extra, offerSecret: undefined };
    const stranger = { ...payment, accepted: { ...payment.accepted, extra } };
    const unproven = await gateway.post(job, { body: 'x', headers: header(stranger) });
    expect(unproven).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    expect(Object.keys(unproven.json)).toEqual(['error', 'code']);

    const receipt = await gateway.get(`/x402/receipts/${digest}`);
    expect(receipt.json).toMatchObject({ state: 'settlement_unknown', paid: null });
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const started = events.find(({ type }) => type === 'settlement_started');
    expect(started?.data).toMatchObject({
      payment: {
        nonce: payment.payload.authorization.nonce,
        signature: payment.payload.signature,
        amount: String(price),
      },
    });
    const { rows } = await database.pool.query<{ status: string; body: Buffer }>(
      'select status, body from tollbook.call join tollbook.call_body using (body_id)',
    );
    expect(rows).toEqual([{ status: 'pending', body: Buffer.from('x') }]);
  },
);

test('a failure before broadcast that the chain confirms is 402 with a new offer, and ends its quote', async () => {
  const { proxy, database, gateway } = await behindProxy('facilitator_verify = false');
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const poor = privateKeyToAccount(`0x${'43'.repeat(32)}`);
  const unfunded = await signOffer(offer, { account: poor });
  proxy.faults.settle = failsBeforeBroadcast;
  const refused = await gateway.post(job, { body: 'x', headers: header(unfunded) });
  expect(refused).toMatchObject({
    status: 402,
    json: { code: 'payment_invalid', reason: 'invalid_exact_evm_insufficient_balance' },
  });
  const digest = offer.accepts[0]?.extra['quoteDigest'];
  expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({
    state: 'settlement_failed',
    paid: false,
  });

  proxy.faults.settle = 'pass';
  const before = await chain.balance(payTo);
  const late = await gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
  expect(late).toMatchObject({ status: 402, json: { code: 'quote_ended' } });
  expect(await chain.balance(payTo)).toBe(before);
  const funded = await gateway.post(job, { body: 'x', headers: header(await signOffer(offerOf(refused))) });
  expect(funded).toMatchObject({ status: 202, json: { quote_digest: refused.json.quote_digest } });
  expect((await chain.balance(payTo)) - before).toBe(price);
  // the failed payment keeps its binding: asked again it is still a failure, not a second attempt
  const again = await gateway.post(job, { body: 'x', headers: header(unfunded) });
  expect(again).toMatchObject({ status: 402, json: { reason: 'invalid_exact_evm_insufficient_balance' } });
  const { rows } = await database.pool.query('select status from tollbook.call order by call_id');
  expect(rows).toEqual([{ status: 'watched' }, { status: 'ready' }]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('if the outbox is full nothing is charged', async () => {
  const { gateway } = await startWithDatabase({
    chain,
    isDocumented: true,
    tables: '[limits]\nmax_outstanding_calls = 1\nrequests_per_minute = 0',
  });
  expect((await payFor(gateway, job)).status).toBe(202);
  const before = await chain.balance(payTo);
  const answer = await payFor(gateway, job);
  expect(answer).toMatchObject({ status: 503, json: { code: 'enqueue_failed' } });
  expect(answer.headers.get('retry-after')).not.toBeNull();
  expect(await chain.balance(payTo)).toBe(before);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, enqueue_failed: 1 });
});

test('payments of unknown outcome take a tenth of the places of one payer at most, and sales stop when all are taken', async () => {
  const { proxy, database, gateway } = await behindProxy('', { limits: { maxUnsettledCalls: 3 } });
  const payers = [1, 2, 3].map((n) => privateKeyToAccount(`0x${String(n).repeat(64)}`));
  for (const { address } of payers) await chain.mint(address.toLowerCase() as Address, 100_000_000n);
  const [first, second, third] = payers as [(typeof payers)[0], (typeof payers)[0], (typeof payers)[0]];
  const pays = async (account: (typeof payers)[0], signed = {}) => {
    const headers = header(await quoteAndSign(gateway, job, 'x', { account, signed }));
    return gateway.post(job, { body: 'x', headers });
  };
  // calls that wait for a runner do not count
  for (let i = 0; i < 3; i++) expect((await pays(first)).status).toBe(202);
  proxy.faults.settle = 'server_error';
  const pending = { status: 503, json: { code: 'settlement_pending' } };
  const refusal = { status: 503, json: { code: 'enqueue_failed' } };
  const unknown = (count: number) =>
    eventually(async () => {
      const { rows } = await database.pool.query(
        `select from tollbook.payment where state = 'settlement_unknown'`,
      );
      expect(rows).toHaveLength(count);
    });
  const before = await chain.balance(payTo);
  expect(await pays(first)).toMatchObject(pending);
  await unknown(1);
  expect(await pays(first)).toMatchObject(refusal);
  expect(await pays(second)).toMatchObject(pending);
  expect(await pays(third)).toMatchObject(pending);
  await unknown(3);
  // the places of all are taken
  const fourth = privateKeyToAccount(`0x${'4'.repeat(64)}`);
  await chain.mint(fourth.address.toLowerCase() as Address, 100_000_000n);
  expect(await pays(fourth)).toMatchObject(refusal);
  expect(await chain.balance(payTo)).toBe(before);
  // none of them can be settled any more: they wait for the chain, and sales go on
  proxy.faults.settle = 'pass';
  await database.moveClock(600);
  const validBefore = String(Math.floor(Date.now() / 1_000) + 800);
  // the gateway reads the database's clock with its next append
  await eventually(async () => expect((await pays(fourth, { validBefore })).status).toBe(202));
  const refused = (await allEvents(database.db)).find(({ type }) => type === 'enqueue_failed');
  expect(refused?.data).toMatchObject({ reason: 'too_many_unsettled' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a gateway that shuts down finishes the payment it started', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const payment = await quoteAndSign(gateway, job, 'x');
  const paying = gateway.post(job, { body: 'x', headers: header(payment) });
  await eventually(() => expect(proxy.seen).toContain('settle'));
  const stopping = gateway.stop();
  expect((await paying).status).toBe(202);
  await stopping;
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.at(-1)?.type).toBe('enqueued');
});

test('a gateway that shuts down makes the payment of a request it had accepted, unless that could not end in time', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const top = 'shutdown_grace_secs = 60';
  const hurried = await startTestGateway({ database, chain, facilitatorUrl: proxy.url, top });
  const stopped: Promise<unknown>[] = [];
  const nowMs = performance.now.bind(performance);
  onTestFinished(() => void vi.restoreAllMocks());
  const payWhile = async (stopping: typeof gateway, passesMs: number) => {
    const payment = await quoteAndSign(stopping, job, 'x');
    proxy.faults.verify = {
      change: async (answer) => {
        stopped.push(stopping.stop());
        vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + passesMs);
        return answer;
      },
    };
    return stopping.post(job, { body: 'x', headers: header(payment) });
  };
  expect((await payWhile(gateway, 0)).status).toBe(202);
  const before = await chain.balance(payTo);
  expect(await payWhile(hurried, 30_000)).toMatchObject({ status: 503, json: { code: 'enqueue_failed' } });
  expect(await chain.balance(payTo)).toBe(before);
  await Promise.all(stopped);
});

test('a client that hangs up while its payment settles still gets its call', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const payment = await quoteAndSign(gateway, job, 'x');
  const leaving = new AbortController();
  proxy.faults.settle = {
    change: (answer) => {
      leaving.abort();
      return answer;
    },
  };
  const disconnected = fetch(gateway.url + job, {
    method: 'POST',
    body: 'x',
    headers: header(payment),
    signal: leaving.signal,
  });
  await expect(disconnected).rejects.toThrow(/abort/i);
  await eventually(async () => {
    expect((await allEvents(database.db)).at(-1)?.type).toBe('enqueued');
  });
  const again = await gateway.post(job, {
    body: 'x',
    headers: { 'content-type': 'text/plain', ...header(payment) },
  });
  expect(again.status).toBe(202);
});

test('one nonce signed for two tokens of one quote is two payments, of which one can take the quote', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const dollars = await signOffer(offer);
  const { nonce } = dollars.payload.authorization;
  const euros = await signOffer(offer, { option: 1, signed: { nonce } });
  const send = (payment: unknown) => gateway.post(job, { body: 'x', headers: header(payment) });
  const lane = openLane({ url: database.url });
  onTestFinished(() => lane.close());
  // the stream moves while the payment settles, so that its outcome is recorded by looking again
  proxy.faults.settle = {
    change: async (answer) => {
      await lane.append({ stream: dollars.accepted.extra['quoteDigest'] ?? '', events: [requestRefused()] });
      return answer;
    },
  };
  const paid = await send(euros);
  expect(paid).toMatchObject({ status: 202, json: { payment: { symbol: 'EURC' } } });
  expect(await send(euros)).toMatchObject({ status: 202, json: { call_id: paid.json.call_id } });
  expect(await send(dollars)).toMatchObject({ status: 409, json: { code: 'quote_in_use' } });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
