import { setTimeout as sleep } from 'node:timers/promises';
import { decodePaymentResponseHeader } from '@x402/fetch';
import { beforeAll, describe, expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../../src/devnet/token.ts';
import { useChain } from '../../../support/devnet.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../../support/independent.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { header, offerOf } from '../../../support/payer.ts';
import { exportSealed } from '../../../support/reconcile.ts';
import { moveUpto, signUpto, type UptoOptions, type UptoPayment } from '../../../support/upto.ts';
import { soon } from '../../../payments/use-cases/settlement-support.ts';
import { type Answering, eventTypes, startApi, startRouteGateway, uptoFetch, weather } from './support.ts';

const chain = useChain();
beforeAll(() => approvePermit2(chain.chain, chain.token, devnetKeys.payer));

const city = '/weather/paris';
const most = 10_000n;
const used = 3_000n;
const paidSoFar = () => chain.balance(payTo);

/** An API whose answers say this price. */
const costing =
  (...prices: readonly string[]): Answering =>
  ({ url }, response) =>
    void response.setHeader('x-price', [...prices]).end(`answer of ${url}`);

async function start(answering: Answering = costing('0.003 USD'), facilitatorUrl = chain.facilitatorUrl) {
  const api = await startApi(answering);
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    facilitatorUrl,
    routes: weather(api.url, 'charge_header = "x-price"\ntimeout_ms = 5_000'),
  });
  const { paid, database } = gateway;
  const sign = async (options: UptoOptions = {}) => signUpto(offerOf(await paid.get(city)), options);
  const pay = (payment: UptoPayment) => paid.get(city, header(payment));
  const receiptOf = async ({ accepted }: UptoPayment) =>
    (await gateway.get(`/x402/receipts/${accepted.extra['quoteDigest']}`)).json;
  const expectSound = () => database.asOwner((owner) => expectSoundLedger(database.db, owner));
  return { api, gateway, database, sign, pay, receiptOf, expectSound };
}

describe('a route that is paid by upto', () => {
  test('takes of the official client what its answer has used, and two verifiers without shared code accept the record', async () => {
    const { gateway, database, expectSound } = await start();
    const before = await paidSoFar();
    const response = await uptoFetch(`${gateway.routesUrl}${city}`);
    expect([response.status, await response.text()]).toEqual([200, `answer of ${city}`]);
    expect(await paidSoFar()).toBe(before + used);
    const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
    expect(settled).toMatchObject({ success: true, amount: String(used) });
    expect(await eventTypes(gateway)).toEqual(
      'quote_issued payment_verified settlement_started upstream_answered payment_settled enqueued completed'.split(
        ' ',
      ),
    );
    await expectSound();
    const { file, checkpoint } = await exportSealed(database);
    expectIndependent(await verifyIndependently(file, [checkpoint]), true);
  });

  test('offers the most by upto, with the account of its facilitator, and nothing else', async () => {
    const { gateway } = await start();
    const { accepts } = offerOf(await gateway.paid.get(city));
    expect(accepts.map(({ scheme, amount }) => [scheme, amount])).toEqual([['upto', String(most)]]);
    expect(accepts[0]?.extra).toMatchObject({
      assetTransferMethod: 'permit2',
      facilitatorAddress: expect.stringMatching(/^0x[0-9a-f]{40}$/),
    });
    expect(accepts[0]?.extra).not.toHaveProperty('paymentFlow');
  });

  test('moves nothing for an answer that costs nothing, and gives it', async () => {
    const { gateway, sign, pay, receiptOf, expectSound } = await start(costing('0 USD'));
    const before = await paidSoFar();
    const payment = await sign();
    const answer = await pay(payment);
    expect([answer.status, answer.text]).toEqual([200, `answer of ${city}`]);
    expect(answer.headers.get('payment-response')).toBeNull();
    expect(await paidSoFar()).toBe(before);
    expect(await receiptOf(payment)).toMatchObject({ state: 'settlement_failed', paid: false });
    expect((await eventTypes(gateway)).at(-1)).toBe('settlement_failed');
    await expectSound();
  });

  test.each([
    ['more than the offer', ['0.010000000000000001 USD'], 'price_above_offer'],
    ['no price', [], 'price_missing'],
    ['two prices', ['0.001 USD', '0.002 USD'], 'price_repeated'],
    ['NaN', ['NaN USD'], 'price_malformed'],
    ['a negative price', ['-0.001 USD'], 'price_malformed'],
    ['a price in another unit', ['1000'], 'price_in_another_unit'],
  ])('charges nothing and gives nothing for an answer that reports %s', async (_, prices, reason) => {
    const { sign, pay, receiptOf, database } = await start(costing(...prices));
    const before = await paidSoFar();
    const payment = await sign();
    expect(await pay(payment)).toMatchObject({ status: 502, json: { code: 'upstream_unanswered' } });
    expect(await paidSoFar()).toBe(before);
    expect(await receiptOf(payment)).toMatchObject({ state: 'settlement_failed', paid: false });
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.find(({ type }) => type === 'settlement_failed')?.data).toMatchObject({ reason });
  });

  test('gives the stored answer again to the same payment, and takes nothing more', async () => {
    const { sign, pay, api } = await start();
    const payment = await sign();
    const before = await paidSoFar();
    const [first, second] = [await pay(payment), await pay(payment)];
    expect([first.text, second.text]).toEqual([`answer of ${city}`, `answer of ${city}`]);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(api.asked).toHaveLength(1);
    expect(await paidSoFar()).toBe(before + used);
  });

  test('settles what was used once also if the facilitator does not answer', async () => {
    const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
    const { database, sign, pay, receiptOf, expectSound } = await start(undefined, proxy.url);
    for (const fault of ['cut_before', 'cut_after'] as const) {
      proxy.faults.settle = fault;
      const payment = await sign();
      const before = await paidSoFar();
      expect(await pay(payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
      delete proxy.faults.settle;
      await database.moveClock(6);
      await soon(database, async () =>
        expect(await receiptOf(payment)).toMatchObject({ state: 'completed' }),
      );
      expect(await paidSoFar()).toBe(before + used);
      expect(await pay(payment)).toMatchObject({ status: 200, text: `answer of ${city}` });
    }
    await expectSound();
  });

  test('owes the whole amount back if its facilitator moves more than was used, and gives no answer for it', async () => {
    let payment: UptoPayment | undefined;
    const { database, sign, pay, receiptOf, expectSound, gateway } = await start(
      async ({ url }, response) => {
        if (payment) await moveUpto(chain.rpcUrl, payment, used + 1n);
        response.setHeader('x-price', '0.003 USD').end(`answer of ${url}`);
      },
    );
    payment = await sign();
    const before = await paidSoFar();
    expect((await pay(payment)).status).toBe(503);
    await database.moveClock(6);
    const signed = payment;
    await soon(database, async () =>
      expect(await receiptOf(signed)).toMatchObject({ state: 'settled', paid: true }),
    );
    expect(await paidSoFar()).toBe(before + used + 1n);
    expect(await receiptOf(signed)).toMatchObject({ payment: { amount: String(used + 1n) } });
    expect(await eventTypes(gateway)).not.toContain('enqueued');
    expect(await pay(signed)).toMatchObject({ json: { code: 'payment_recovered' } });
    await expectSound();
  });

  test('records what its facilitator moved if that is less than was used, and gives the answer', async () => {
    let payment: UptoPayment | undefined;
    const { database, sign, pay, receiptOf, expectSound } = await start(async ({ url }, response) => {
      if (payment) await moveUpto(chain.rpcUrl, payment, 1n);
      response.setHeader('x-price', '0.003 USD').end(`answer of ${url}`);
    });
    payment = await sign();
    const signed = payment;
    await pay(signed);
    await database.moveClock(6);
    await soon(database, async () => expect(await receiptOf(signed)).toMatchObject({ state: 'completed' }));
    expect(await receiptOf(signed)).toMatchObject({ payment: { amount: '1' } });
    await expectSound();
  });

  test('buys nothing with a payment that its facilitator moved before the request: its refund is due', async () => {
    const { sign, pay, api, expectSound } = await start();
    const payment = await sign();
    await moveUpto(chain.rpcUrl, payment, most);
    expect(await pay(payment)).toMatchObject({ json: { code: 'payment_recovered' } });
    expect(api.asked).toHaveLength(0);
    await expectSound();
  });

  test('moves nothing without its own facilitator', async () => {
    const { sign } = await start();
    await expect(moveUpto(chain.rpcUrl, await sign(), used, devnetKeys.spare)).rejects.toThrow('reverted');
  });

  test.each<[string, UptoOptions['signed']]>([
    ['another facilitator', { submitter: '0x00000000000000000000000000000000000000aa' }],
    ['another payee', { payTo: '0x00000000000000000000000000000000000000aa' }],
    ['less than the offer', { amount: most - 1n }],
    ['more than the offer', { amount: most + 1n }],
    ['nothing', { amount: 0n }],
    ['a time that is over', { validBefore: 1n }],
  ])('refuses a payment that is signed for %s, and asks its upstream nothing', async (_, signed = {}) => {
    const { sign, pay, api } = await start();
    const before = await paidSoFar();
    expect((await pay(await sign({ signed }))).status).toBe(402);
    expect(api.asked).toHaveLength(0);
    expect(await paidSoFar()).toBe(before);
  });
});

/** An event stream whose price follows it. */
const streaming =
  (price: string, pauseMs = 0): Answering =>
  async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', trailer: 'x-price' });
    response.write('data: one\n\n');
    if (pauseMs > 0) await sleep(pauseMs);
    response.write('data: two\n\n');
    response.addTrailers({ 'x-price': price });
    response.end();
  };

describe('a stream whose price follows it', () => {
  test('reaches its client while it comes, and what it has used is taken after its end', async () => {
    const held = Promise.withResolvers<void>();
    const { gateway, sign, receiptOf, database, expectSound } = await start(async (_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', trailer: 'x-price' });
      response.write('data: one\n\n');
      await held.promise;
      response.addTrailers({ 'x-price': '0.003 USD' });
      response.end('data: two\n\n');
    });
    const payment = await sign();
    const before = await paidSoFar();
    const response = await fetch(`${gateway.routesUrl}${city}`, { headers: header(payment) });
    expect(response.headers.get('link')).toContain('payment-receipt');
    const reader = response.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: one\n\n');
    expect(await paidSoFar()).toBe(before);
    held.resolve();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: two\n\n');
    expect((await reader.read()).done).toBe(true);
    await soon(database, async () => expect(await receiptOf(payment)).toMatchObject({ state: 'completed' }));
    expect(await paidSoFar()).toBe(before + used);
    await expectSound();
  });

  test('is kept whole for a client that leaves, who pays for it and gets it by the same payment', async () => {
    const { gateway, sign, pay, receiptOf, database, expectSound } = await start(streaming('0.003 USD', 300));
    const payment = await sign();
    const before = await paidSoFar();
    const leaving = new AbortController();
    const response = await fetch(`${gateway.routesUrl}${city}`, {
      headers: header(payment),
      signal: leaving.signal,
    });
    await response.body!.getReader().read();
    leaving.abort();
    await soon(database, async () => expect(await receiptOf(payment)).toMatchObject({ state: 'completed' }));
    expect(await paidSoFar()).toBe(before + used);
    expect((await pay(payment)).text).toBe('data: one\n\ndata: two\n\n');
    await expectSound();
  });

  test.each([
    ['breaks off', undefined],
    ['says no usable price', 'NaN'],
  ])('that %s is cut for its client, and nothing is taken', async (_, price) => {
    const { gateway, sign, receiptOf, database, expectSound } = await start(
      async (asked, response, request) => {
        if (price !== undefined) return streaming(price)(asked, response, request);
        response.writeHead(200, { 'content-type': 'text/event-stream', trailer: 'x-price' });
        response.write('data: one\n\n');
        await sleep(100);
        response.destroy();
      },
    );
    const payment = await sign();
    const before = await paidSoFar();
    const response = await fetch(`${gateway.routesUrl}${city}`, { headers: header(payment) });
    await expect(response.text()).rejects.toThrow('terminated');
    await soon(database, async () =>
      expect(await receiptOf(payment)).toMatchObject({ state: 'settlement_failed' }),
    );
    expect(await paidSoFar()).toBe(before);
    await expectSound();
  });
});
