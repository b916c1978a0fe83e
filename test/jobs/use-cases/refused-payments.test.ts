import { createTestClient, http } from 'viem';
import { describe, expect, test } from 'vitest';
import { setPermitted } from '../../../src/devnet/registry.ts';
import type { Address } from '../../../src/base/values/primitives.ts';
import { permitted, refusedCaller, restrictedJobs } from '../../support/caller.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo, startTestGateway, type TestGateway, startWithDatabase } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { landPayment } from '../../support/onchain.ts';
import { header, offerOf, type Payment, quoteAndSign, signOffer, v1Header } from '../../support/payer.ts';
import { tollbook } from '../../support/program.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { eventually } from '../../support/wait.ts';
import { appendsWait, holdLane } from './lane-lock.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;
const send = ({ post }: TestGateway, payment: unknown) => post(job, { body: 'x', headers: header(payment) });

/** The events of the stream that has the money of a payment without a call. */
async function recordedOf(database: TestDatabase, { payload }: Payment) {
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const own = events.find(
    ({ type, data }) =>
      type === 'payment_recovered' &&
      (data as { payment_nonce: string }).payment_nonce === payload.authorization.nonce,
  );
  return events.filter(({ stream }) => stream === own?.stream);
}

/** The payment is refused, and its refund is due: once, however often it is presented. */
async function expectRefundDue(
  { database, gateway }: { readonly database: TestDatabase; readonly gateway: TestGateway },
  payment: Payment,
  code: string,
) {
  for (let times = 0; times < 2; times += 1)
    expect(await send(gateway, payment)).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
  const recorded = await recordedOf(database, payment);
  expect(recorded.map(({ type }) => type)).toEqual(['payment_recovered']);
  expect(recorded[0]?.data).toMatchObject({ amount: String(price), refused: { code } });
  await eventually(async () => {
    const due = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
    expect(due.stdout).toContain(recorded[0]?.stream ?? '-');
  });
}

describe('a payment that is refused and has landed all the same is on record, and its refund is due:', () => {
  test('another payment has taken its quote', async () => {
    const { database, gateway } = await startWithDatabase({ chain });
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const [first, second] = [await signOffer(offer), await signOffer(offer)];
    expect((await send(gateway, second)).status).toBe(202);
    await landPayment(chain.rpcUrl, first);
    await expectRefundDue({ database, gateway }, first, 'quote_in_use');
  });

  test('another payment has taken its nonce in another token of its quote', async () => {
    const { database, gateway } = await startWithDatabase({ chain });
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const dollars = await signOffer(offer);
    const { nonce } = dollars.payload.authorization;
    const euros = await signOffer(offer, { option: 1, signed: { nonce } });
    expect((await send(gateway, euros)).status).toBe(202);
    await landPayment(chain.rpcUrl, dollars);
    await expectRefundDue({ database, gateway }, dollars, 'quote_in_use');
  });

  test('another payment has its identifier', async () => {
    const id = 'pay_7d5d747be160e280504c099d984bcfe0';
    const { database, gateway } = await startWithDatabase({ chain });
    const carrying = (payment: Payment): Payment =>
      ({ ...payment, extensions: { 'payment-identifier': { info: { required: false, id } } } }) as Payment;
    const first = carrying(await quoteAndSign(gateway, job, 'x'));
    const second = carrying(await quoteAndSign(gateway, job, 'x'));
    expect((await send(gateway, second)).status).toBe(202);
    await landPayment(chain.rpcUrl, first);
    await expectRefundDue({ database, gateway }, first, 'payment_identifier_conflict');
  });

  test('its caller is not permitted', async () => {
    const { database, gateway } = await startWithDatabase({ chain, jobs: restrictedJobs(chain) });
    await chain.mint(refusedCaller.address.toLowerCase() as Address, 10_000_000n);
    const payment = await quoteAndSign(gateway, job, 'x', { account: refusedCaller });
    expect(await send(gateway, payment)).toMatchObject({
      status: 403,
      json: { code: 'caller_not_permitted' },
    });
    await landPayment(chain.rpcUrl, payment);
    await expectRefundDue({ database, gateway }, payment, 'caller_not_permitted');
  });
});

test('a second payment of a quote never takes it, not even after the quote has expired and the payment has landed', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const [first, second] = [await signOffer(offer), await signOffer(offer)];
  const paid = await send(gateway, first);
  expect(paid.status).toBe(202);
  await landPayment(chain.rpcUrl, second);
  await database.moveClock(400);
  await gateway.post(job, { body: 'x' });
  await expectRefundDue({ database, gateway }, second, 'quote_in_use');
  expect(await send(gateway, first)).toMatchObject({ status: 202, json: { call_id: paid.json.call_id } });
});

test('a landed payment that names no offer of this ledger is not recorded as due: another ledger may have delivered it', async () => {
  const other = await startTestGateway({ database: await createDatabase(), chain });
  const { database, gateway } = await startWithDatabase({ chain });
  const payment = await quoteAndSign(other, job, 'x');
  await landPayment(chain.rpcUrl, payment);
  expect(await send(gateway, payment)).toMatchObject({ status: 503, json: { code: 'payment_unrecorded' } });
  expect(await recordedOf(database, payment)).toEqual([]);
  expect((await send(other, payment)).status).toBe(202);
});

/** The payment as a stranger sends it: what landed, with an offer that the stranger has got. */
async function stolen(gateway: TestGateway, { payload }: Payment): Promise<Payment> {
  return { ...(await quoteAndSign(gateway, job, 'x')), payload };
}

describe('a landed payment is public, and buys nothing for a stranger who sends it', () => {
  test('to a second ledger with the same payee: the transfer is older than the offer', async () => {
    const first = await startTestGateway({ database: await createDatabase(), chain });
    const payment = await quoteAndSign(first, job, 'x');
    await landPayment(chain.rpcUrl, payment);
    const database = await createDatabase();
    const second = await startTestGateway({ database, chain });
    // the offer is made an hour later
    await database.moveClock(3_600);
    await second.post(job, { body: 'x' });
    expect(await send(second, await stolen(second, payment))).toMatchObject({
      status: expect.toSatisfy((status: number) => status !== 202),
    });
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.filter(({ type }) => /settlement|enqueued|recovered/.test(type))).toEqual([]);
  });

  test("with the offer of its payer, but not that offer's secret", async () => {
    const { database, gateway } = await startWithDatabase({ chain });
    const payment = await quoteAndSign(gateway, job, 'x');
    const { offerSecret: _, ...extra } = payment.accepted.extra;
    await landPayment(chain.rpcUrl, payment);
    const without = { ...payment, accepted: { ...payment.accepted, extra } };
    expect(await send(gateway, without)).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
    expect((await recordedOf(database, payment)).map(({ type }) => type)).toEqual(['payment_recovered']);
  });

  test('nor for its payer, where the operator says that another ledger has the payee as well', async () => {
    const { database, gateway } = await startWithDatabase({ chain, top: 'pay_to_exclusive = false' });
    const payment = await quoteAndSign(gateway, job, 'x');
    await landPayment(chain.rpcUrl, payment);
    expect(await send(gateway, payment)).toMatchObject({ status: 503, json: { code: 'payment_unrecorded' } });
    expect(await recordedOf(database, payment)).toEqual([]);
  });

  test('of version 1, where the operator says that the payee is not of this ledger alone', async () => {
    const other = await startTestGateway({ database: await createDatabase(), chain });
    const { accepted, payload } = await quoteAndSign(other, job, 'x');
    await landPayment(chain.rpcUrl, { accepted, payload } as Payment);
    const headers = v1Header({ payload });
    const sendTo = async (top: string) => {
      const gateway = await startTestGateway({ database: await createDatabase(), chain, top });
      return gateway.post(job, { body: 'x', headers });
    };
    expect(await sendTo('pay_to_exclusive = false')).toMatchObject({
      status: 503,
      json: { code: 'payment_unrecorded' },
    });
    expect((await sendTo('')).status).toBe(202);
  });
});

test('the refund of a refused payment is not due while its block is replaced, and is due again once it has landed again', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain: { ...chain, rpcUrl: rpc.url } });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const [first, second] = [await signOffer(offer), await signOffer(offer)];
  expect((await send(gateway, second)).status).toBe(202);
  await landPayment(chain.rpcUrl, first);
  expect(await send(gateway, first)).toMatchObject({ json: { code: 'payment_recovered' } });
  rpc.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x')
      ? { result: { number: params[0], hash: `0x${'a'.repeat(64)}`, timestamp: '0x1' } }
      : method === 'eth_getTransactionReceipt'
        ? { result: null }
        : method === 'eth_getLogs'
          ? { error: { code: -32_000, message: 'not now' } }
          : undefined;
  const types = async () => (await recordedOf(database, first)).map(({ type }) => type);
  await eventually(async () => expect(await types()).toEqual(['payment_recovered', 'settlement_reorged']));
  await eventually(async () => {
    const due = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
    expect(due.stdout).not.toContain('quote 0x');
  });
  rpc.lie = () => undefined;
  await eventually(async () =>
    expect(await types()).toEqual(['payment_recovered', 'settlement_reorged', 'payment_settled']),
  );
  await eventually(async () => {
    const due = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
    expect(due.stdout).toContain('quote 0x');
  });
});

/** Sends a payment to the first gateway, whose start waits, then to the second one, which would refuse it. */
async function race(
  database: TestDatabase,
  [first, second]: readonly [TestGateway, TestGateway],
  payment: Payment,
  meanwhile: () => Promise<unknown>,
) {
  const before = await chain.balance(payTo);
  const release = await holdLane(database);
  const started = send(first, payment);
  await appendsWait(database, 1);
  await meanwhile();
  const again = send(second, payment);
  await appendsWait(database, 2);
  await release();
  const answers = [await started, await again];
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  return { statuses: answers.map(({ status }) => status), charged: (await chain.balance(payTo)) - before };
}

const off = (text: string): string =>
  text.replace(
    'job_index = 0\ninvocation_mode = "public_paid"',
    'job_index = 0\ninvocation_mode = "disabled"',
  );

describe('a payment whose start waits at one gateway is not refused at another', () => {
  test('that has taken the job off sale', async () => {
    const database = await createDatabase();
    const first = await startTestGateway({ database, chain });
    const second = await startTestGateway({ database, chain, change: off });
    const payment = await quoteAndSign(first, job, 'x');
    const raced = await race(database, [first, second], payment, async () => undefined);
    expect(raced).toEqual({ statuses: [202, 202], charged: price });
  });

  test('after its caller has lost the permission', async () => {
    const database = await createDatabase();
    const options = { database, chain, jobs: restrictedJobs(chain) };
    const gateways = [await startTestGateway(options), await startTestGateway(options)] as const;
    const caller = permitted.address.toLowerCase() as Address;
    await chain.mint(caller, 10_000_000n);
    const payment = await quoteAndSign(gateways[0], job, 'x', { account: permitted });
    const revoke = () =>
      setPermitted(chain.chain, chain.registry, { serviceId: 1, caller, permitted: false });
    const raced = await race(database, gateways, payment, revoke);
    expect(raced).toEqual({ statuses: [202, 202], charged: price });
  });
});

// the last one: it moves the clock of the chain, which all share
test('a landed payment buys its call also if its offer is of a moment at which the clock was two hours ahead', async () => {
  const database = await createDatabase();
  await database.moveClock(7_200);
  const gateway = await startTestGateway({ database, chain });
  const payment = await quoteAndSign(gateway, job, 'x');
  await database.moveClock(0);
  // the gateway reads the clock with its next append
  expect((await gateway.post(job, { body: 'x' })).status).toBe(402);
  await landPayment(chain.rpcUrl, payment);
  expect(await send(gateway, payment)).toMatchObject({ status: 202 });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a refused payment is recorded also if it landed long before it is presented', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const [first, second] = [await signOffer(offer), await signOffer(offer)];
  expect((await send(gateway, first)).status).toBe(202);
  await landPayment(chain.rpcUrl, second);
  const client = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) });
  // in parts: a busy machine takes seconds for each
  for (let part = 0; part < 15; part += 1) await client.mine({ blocks: 200, interval: 1 });
  await database.moveClock(5_000);
  await gateway.post(job, { body: 'x' });
  await expectRefundDue({ database, gateway }, second, 'quote_in_use');
});
