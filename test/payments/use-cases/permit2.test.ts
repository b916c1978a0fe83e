import { privateKeyToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, test } from 'vitest';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../src/devnet/token.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { offerOf, signOffer } from '../../support/payer.ts';
import {
  cancelPermit,
  euroByPermit2,
  landPermit,
  type PermitOptions,
  signPermit,
} from '../../support/permit2.ts';
import { exportSealed } from '../../support/reconcile.ts';
import { behindProxy, job, pay, price, reaches, receiptOf, soon } from './settlement-support.ts';

const chain = useChain();
beforeAll(() => approvePermit2(chain.chain, chain.secondToken, devnetKeys.payer));

const paidSoFar = () => chain.balance(payTo, chain.secondToken);

async function start() {
  const behind = await behindProxy(chain, { change: euroByPermit2 });
  const { gateway } = behind;
  const sign = async (options: PermitOptions = {}) =>
    signPermit(offerOf(await gateway.post(job, { body: 'x' })), options);
  return { ...behind, sign };
}

describe('a payment by Permit2', () => {
  test('of the official client moves exactly the price, and two verifiers without shared code accept its record', async () => {
    const { gateway, database, runner, typesOf } = await start();
    const before = await paidSoFar();
    const paid = await payForOneJob({
      gatewayUrl: gateway.url,
      privateKey: devnetKeys.payer,
      serviceId: 1,
      jobIndex: 0,
      body: 'hello',
      transferMethod: 'permit2',
    });
    expect(await paidSoFar()).toBe(before + price);
    expect(paid.result.toString()).toBe('did hello');
    expect(runner.deliveries).toHaveLength(1);
    expect(await typesOf(paid.body.quote_digest)).toEqual([
      'quote_issued',
      'payment_verified',
      'settlement_started',
      'payment_settled',
      'enqueued',
      'delivered',
      'completed',
    ]);
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.find(({ type }) => type === 'payment_settled')?.data).toMatchObject({
      evidence: 'chain',
      transaction: paid.transaction,
    });
    const { file, checkpoint } = await exportSealed(database);
    expectIndependent(await verifyIndependently(file, [checkpoint]), true);
  });

  test('that landed after a time-out reaches its runner without another request of the client', async () => {
    const { proxy, gateway, sign, hurry, database, runner } = await start();
    const payment = await sign();
    const before = await paidSoFar();
    proxy.faults.settle = 'cut_after';
    expect(await pay(gateway, payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    await hurry();
    await reaches(gateway, payment, 'completed', database);
    expect(runner.deliveries).toHaveLength(1);
    expect(await paidSoFar()).toBe(before + price);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('that never reached the chain is settled again with the same payment', async () => {
    const { proxy, gateway, sign, hurry, database } = await start();
    const payment = await sign();
    const before = await paidSoFar();
    proxy.faults.settle = 'cut_before';
    expect((await pay(gateway, payment)).status).toBe(503);
    delete proxy.faults.settle;
    await hurry();
    await reaches(gateway, payment, 'completed', database);
    expect(await paidSoFar()).toBe(before + price);
  });

  test('that a stranger lands before it reaches the gateway is paid for and delivered once', async () => {
    const { gateway, sign, database, runner } = await start();
    const payment = await sign();
    const transaction = await landPermit(chain.rpcUrl, payment);
    const answer = await pay(gateway, payment);
    expect(answer).toMatchObject({ status: 202, json: { payment: { transaction } } });
    await reaches(gateway, payment, 'completed', database);
    expect((await pay(gateway, payment)).status).toBe(202);
    expect(runner.deliveries).toHaveLength(1);
  });

  test('of one nonce pays for one call, also for simultaneous requests for two quotes', async () => {
    const { gateway, sign, runner, database } = await start();
    const nonce = `0x${'5e'.repeat(32)}` as const;
    const before = await paidSoFar();
    const payments = [await sign({ nonce }), await sign({ nonce })];
    const answers = await Promise.all(payments.map((payment) => pay(gateway, payment)));
    // the other request has the same payment, without the secret of its offer
    expect(answers.filter(({ json }) => json['call_id'] !== undefined)).toHaveLength(1);
    expect(await paidSoFar()).toBe(before + price);
    await soon(database, async () => expect(runner.deliveries).toHaveLength(1));
  });

  test('whose nonce its payer invalidated is refused, and nothing is charged', async () => {
    const { gateway, sign } = await start();
    const payment = await sign();
    await cancelPermit(chain.rpcUrl, payment);
    const before = await paidSoFar();
    const answer = await pay(gateway, payment);
    expect(answer).toMatchObject({ status: 402, json: { reason: 'authorization_canceled' } });
    expect(await paidSoFar()).toBe(before);
  });

  test('whose nonce its payer invalidated while its outcome was unknown fails for good once that is final', async () => {
    const { proxy, gateway, sign, database, hurry, runner } = await start();
    const payment = await sign();
    proxy.faults.settle = 'cut_before';
    expect((await pay(gateway, payment)).status).toBe(503);
    await cancelPermit(chain.rpcUrl, payment);
    await hurry();
    await soon(database, async () =>
      expect(await receiptOf(gateway, payment)).toMatchObject({ paid: false, state: 'settlement_failed' }),
    );
    expect(runner.deliveries).toHaveLength(0);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('that was refused and lands is recorded with its refund due, and both verifiers accept that', async () => {
    const { gateway, database } = await start();
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    expect((await pay(gateway, await signPermit(offer))).status).toBe(202);
    const second = await signPermit(offer);
    expect((await pay(gateway, second)).status).toBe(409);
    await landPermit(chain.rpcUrl, second);
    expect(await pay(gateway, second)).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const { file, checkpoint } = await exportSealed(database);
    expectIndependent(await verifyIndependently(file, [checkpoint]), true);
  });

  test('of a payer who has not approved Permit2 is refused, and nothing is charged', async () => {
    const { gateway, sign } = await start();
    const account = privateKeyToAccount(devnetKeys.permittedCaller);
    await chain.mint(account.address.toLowerCase() as `0x${string}`, price, chain.secondToken);
    expect(await pay(gateway, await sign({ account }))).toMatchObject({
      status: 402,
      json: { reason: 'permit2_allowance_required' },
    });
  });

  test('is no payment in another transfer method, and a transfer in another method is no payment by Permit2', async () => {
    const { gateway, sign } = await start();
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const [dollars] = offer.accepts;
    const before = await paidSoFar();
    // EURC takes EIP-3009 transfers, and the offer is for Permit2
    expect((await pay(gateway, await signOffer(offer, { option: 1 }))).status).toBe(402);
    const permit = await sign();
    if (!dollars) throw new Error('no offer in USDC');
    expect((await pay(gateway, { ...permit, accepted: { ...dollars } })).status).toBe(402);
    expect(await paidSoFar()).toBe(before);
  });
});
