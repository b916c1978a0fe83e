import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { type Answer, payTo, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, payer, type Payment, quoteAndSign, type SignOptions } from '../../support/payer.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;
const id = 'pay_7d5d747be160e280504c099d984bcfe0';

async function start() {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const database = await createDatabase();
  const asked = { database, chain, facilitatorUrl: proxy.url, isDocumented: true };
  return { proxy, database, gateway: await startTestGateway(asked) };
}

const carrying = (payment: Payment, named: unknown = id) => ({
  ...payment,
  extensions: { 'payment-identifier': { info: { required: false, id: named } } },
});

async function signed(gateway: TestGateway, named: unknown = id, options: SignOptions = {}, path = job) {
  return carrying(await quoteAndSign(gateway, path, 'x', options), named);
}

const send = (gateway: TestGateway, payment: unknown, path = job, body = 'x') =>
  gateway.post(path, { body, headers: header(payment) });

const balances = () => Promise.all([chain.balance(payTo), chain.balance(payer.address)]);

/** A refusal before money moves: the operator's and the payer's balances are what they were. */
async function uncharged(act: () => Promise<Answer>): Promise<Answer> {
  const before = await balances();
  const answer = await act();
  expect(await balances()).toEqual(before);
  return answer;
}

const conflict = { status: 409, json: { code: 'payment_identifier_conflict' } };

test('the 402 offers the extension as optional', async () => {
  const { gateway } = await start();
  const { extensions } = offerOf(await gateway.post(job)) as unknown as { extensions: object };
  const schema = expect.objectContaining({ type: 'object', required: ['required'] });
  expect({ ...extensions, bazaar: undefined }).toEqual({
    'payment-identifier': { info: { required: false }, schema },
  });
});

test('the official client whose extension adds an id pays, and its second payment with that id is not charged', async () => {
  const { gateway } = await start();
  const client = x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
    spendControls: false,
  });
  client.registerExtension({
    key: 'payment-identifier',
    enrichPaymentPayload: async (payload) => ({
      ...payload,
      extensions: { ...payload.extensions, 'payment-identifier': { info: { id } } },
    }),
  });
  const pay = () => wrapFetchWithPayment(fetch, client)(gateway.url + job, { method: 'POST', body: 'x' });
  expect((await pay()).status).toBe(202);
  const before = await chain.balance(payer.address);
  const second = await pay();
  expect([second.status, await second.json()]).toMatchObject([409, { code: 'payment_identifier_conflict' }]);
  expect(await chain.balance(payer.address)).toBe(before);
});

test.each([
  ['the same request', job],
  ['another job', '/x402/jobs/1/1'],
])(
  'another payment of the payer with a used id, for %s, is 409 before money moves, and counted',
  async (_, path) => {
    const { gateway, database, proxy } = await start();
    expect((await send(gateway, await signed(gateway))).status).toBe(202);
    const settles = () => proxy.seen.filter((operation) => operation === 'settle').length;
    const before = settles();
    const other = await signed(gateway, id, {}, path);
    expect(await uncharged(() => send(gateway, other, path))).toMatchObject(conflict);
    expect(settles()).toBe(before);
    expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, replay_denied: 1 });
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const { nonce } = other.payload.authorization;
    expect(events.find(({ type }) => type === 'settlement_started')?.data).toHaveProperty('payment_id', id);
    expect(events.at(-1)).toMatchObject({
      type: 'payment_replay_denied',
      stream: expect.stringMatching(/^request:/),
      data: { claim: 'payment_identifier', payer: payer.address.toLowerCase(), payment_nonce: nonce },
    });
  },
);

test('a known payment with another body is a replay of the payment, whatever its id', async () => {
  const { gateway } = await start();
  const payment = await signed(gateway);
  expect((await send(gateway, payment)).status).toBe(202);
  const elsewhere = await send(gateway, payment, job, 'y');
  expect(elsewhere).toMatchObject({ status: 409, json: { code: 'payment_replay' } });
});

test('two payers may use the same id', async () => {
  const { gateway } = await start();
  const other = privateKeyToAccount(`0x${'51'.repeat(32)}`);
  await chain.mint(other.address, price);
  expect((await send(gateway, await signed(gateway))).status).toBe(202);
  expect((await send(gateway, await signed(gateway, id, { account: other }))).status).toBe(202);
});

test("a payer's id cannot be claimed without its signature", async () => {
  const { gateway } = await start();
  const stranger = privateKeyToAccount(`0x${'52'.repeat(32)}`);
  const forged = await signed(gateway, id, { account: stranger, signed: { from: payer.address } });
  expect((await send(gateway, forged)).status).toBe(402);
  expect((await send(gateway, await signed(gateway))).status).toBe(202);
});

test('a payment with an id that is malformed is 400 before any peer is asked, and is accepted with a valid id', async () => {
  const { gateway, database, proxy } = await start();
  const payment = await quoteAndSign(gateway, job, 'x');
  const code = 'invalid_payment_identifier';
  expect(await send(gateway, carrying(payment, 'too-short'))).toMatchObject({ status: 400, json: { code } });
  expect(proxy.seen).not.toContain('verify');
  const last = (await allEvents(database.db)).at(-1);
  expect(last).toMatchObject({ type: 'request_refused', data: { code } });
  expect((await send(gateway, carrying(payment))).status).toBe(202);
});

test('a known payment gets its own outcome, even with another id', async () => {
  const { gateway } = await start();
  const payment = await quoteAndSign(gateway, job, 'x');
  const first = await send(gateway, payment);
  expect(first.status).toBe(202);
  expect(await send(gateway, await signed(gateway))).toMatchObject({ status: 202 });
  for (const again of [payment, carrying(payment), carrying(payment, 'too-short')]) {
    expect(await send(gateway, again)).toMatchObject({ status: 202, json: { call_id: first.json.call_id } });
  }
});
