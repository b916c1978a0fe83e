import { describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { failsBeforeBroadcast } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { cancelPayment, landPayment } from '../../support/onchain.ts';
import { header, offerOf, type Payment, quoteAndSign, signOffer } from '../../support/payer.ts';
import { tollbook } from '../../support/program.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { startSilentProxy } from '../../support/silent-proxy.ts';
import { operatorOf as bearerOf } from '../../support/operator.ts';
import { eventually } from '../../support/wait.ts';
import {
  behindProxy,
  digestOf,
  inMinutes,
  job,
  moveChainClock,
  pay,
  price,
  reaches,
  receiptOf,
  soon,
  startReceiver,
} from './settlement-support.ts';

const chain = useChain();
/** The selector of the token's function that is asked whether an authorization is used. */
const authorizationState = '0xe94a0102';

describe('a settlement of unknown outcome', () => {
  test('that landed after a time-out reaches its runner without another request of the client', async () => {
    const { proxy, database, gateway, runner, typesOf, hurry } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    proxy.faults.settle = 'cut_after';
    expect(await pay(gateway, payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    await hurry();
    await reaches(gateway, payment, 'completed', database);
    expect(runner.deliveries).toHaveLength(1);
    expect(await chain.balance(payTo)).toBe(before + price);
    expect(await typesOf(digestOf(payment))).toEqual([
      'quote_issued',
      'payment_verified',
      'settlement_started',
      'settlement_unknown',
      'payment_settled',
      'enqueued',
      'delivered',
      'completed',
    ]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('with a facilitator that always times out ends as 202 for every client that repeats its request, charged once', async () => {
    const { proxy, database, gateway } = await behindProxy(chain);
    proxy.faults.settle = 'cut_after';
    const before = await chain.balance(payTo);
    const payments = await Promise.all(Array.from({ length: 4 }, () => quoteAndSign(gateway, job, 'x')));
    const untilAccepted = async (payment: Payment): Promise<number[]> => {
      const seen: number[] = [];
      await eventually(async () => {
        const { status } = await pay(gateway, payment);
        seen.push(status);
        expect(status).toBe(202);
      });
      return seen;
    };
    const seen = await Promise.all(payments.map(untilAccepted));
    expect(new Set(seen.flat())).toEqual(new Set([503, 202]));
    await Promise.all(payments.map((payment) => reaches(gateway, payment, 'completed')));
    expect(await chain.balance(payTo)).toBe(before + 4n * price);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('that never reached the chain is settled again with the same payment', async () => {
    const { proxy, database, gateway, hurry } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    proxy.faults.settle = 'cut_before';
    expect((await pay(gateway, payment)).status).toBe(503);
    expect(await chain.balance(payTo)).toBe(before);
    proxy.faults.settle = 'pass';
    await hurry();
    await reaches(gateway, payment, 'completed', database);
    expect(await chain.balance(payTo)).toBe(before + price);
  });

  test('is not settled again once another gateway has recorded that the ledger is halted, while the chain was asked', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { proxy, database, gateway } = await behindProxy(chain, { rpcUrl: rpc.url });
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    proxy.faults.settle = 'cut_before';
    expect((await pay(gateway, payment)).status).toBe(503);
    proxy.faults.settle = 'pass';
    proxy.seen.length = 0;
    let halts: Promise<unknown> | undefined;
    rpc.lie = async ({ params }) => {
      if (!JSON.stringify(params).includes(authorizationState)) return undefined;
      halts ??= database.asOwner((owner) => owner.query(`select tollbook.halt_ledger('a test', 1, 1)`));
      await halts;
      return undefined;
    };
    await database.moveClock(20);
    await eventually(() => expect(halts).toBeDefined());
    await eventually(async () => expect((await gateway.get('/status')).json.status).toBe('critical'));
    expect(proxy.seen).not.toContain('settle');
    expect(await chain.balance(payTo)).toBe(before);
  });

  test('whose payer has used its nonce for one atom to the payee fails, once that is final', async () => {
    const { proxy, database, gateway, typesOf } = await behindProxy(chain, { settleMs: 1_000 });
    const payment = await quoteAndSign(gateway, job, 'x');
    const { nonce } = payment.payload.authorization;
    proxy.faults.settle = 'hang';
    const answer = pay(gateway, payment);
    await eventually(() => expect(proxy.seen).toContain('settle'));
    const offer = { accepts: [payment.accepted] } as unknown as Parameters<typeof signOffer>[0];
    await landPayment(chain.rpcUrl, await signOffer(offer, { signed: { nonce, value: '1' } }));
    expect((await answer).status).toBe(503);
    await reaches(gateway, payment, 'settlement_failed', database);
    expect(await pay(gateway, payment)).toMatchObject({
      status: 402,
      json: { reason: 'authorization_used_otherwise' },
    });
    expect(await typesOf(digestOf(payment))).not.toContain('operator_settlement_resolved');
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is resolved by any of several processes, and recorded once', async () => {
    const { proxy, database, gateway, setup, hurry } = await behindProxy(chain);
    await startTestGateway(setup);
    await startTestGateway(setup);
    proxy.faults.settle = 'cut_after';
    const payments = await Promise.all(Array.from({ length: 3 }, () => quoteAndSign(gateway, job, 'x')));
    const answers = await Promise.all(payments.map((payment) => pay(gateway, payment)));
    expect(answers.map(({ json }) => json.code)).toEqual(payments.map(() => 'settlement_pending'));
    await hurry();
    await Promise.all(payments.map((payment) => reaches(gateway, payment, 'completed')));
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.filter(({ type }) => type === 'payment_settled')).toHaveLength(3);
    expect(events.filter(({ type }) => type === 'enqueued')).toHaveLength(3);
  });

  test('that is open for too long is alerted once, and listed with its age and reason', async () => {
    const { url, alerts } = await startReceiver();
    const { proxy, database, gateway } = await behindProxy(chain, {
      tables: `[alerts]\nwebhook = "${url}"`,
      constants: { alerts: { unresolvedAfterSecs: 1 } },
    });
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.settle = 'server_error';
    expect((await pay(gateway, payment)).status).toBe(503);
    await eventually(() => expect(alerts.map(({ type }) => type)).toEqual(['settlement_overdue']));
    expect(alerts[0]).toMatchObject({ quote_digest: digestOf(payment) });
    expect(alerts[0]?.text).toContain('tollbook settlements');
    const listed = await tollbook(['settlements'], { DATABASE_URL: database.url });
    expect(listed.stdout).toMatch(new RegExp(`quote ${digestOf(payment)} {2}open for \\d+ s {2}status_502`));
    proxy.faults.settle = 'pass';
    await reaches(gateway, payment, 'completed', database);
    expect(alerts).toHaveLength(1);
  });
});

const text = ({ body_base64 }: { readonly body_base64: string }): string =>
  Buffer.from(body_base64, 'base64').toString();

describe('a payment that failed before anything was broadcast', () => {
  test('and lands later gets its own call under its own quote, and its receipt shows its own result', async () => {
    const { proxy, database, gateway, runner } = await behindProxy(chain);
    const offer = offerOf(await gateway.post(job, { body: 'FIRST' }));
    const [first, other] = [await signOffer(offer), await signOffer(offer)];
    proxy.faults.settle = failsBeforeBroadcast;
    const failed = await gateway.post(job, { body: 'FIRST', headers: header(first) });
    expect(failed.status).toBe(402);
    proxy.faults.settle = 'pass';
    // its quote has ended, and its client got another one
    const refused = await gateway.post(job, { body: 'SECOND', headers: header(other) });
    expect(refused).toMatchObject({ status: 402, json: { code: 'quote_ended' } });
    const second = await signOffer(offerOf(refused));
    const accepted = await gateway.post(job, { body: 'SECOND', headers: header(second) });
    expect(accepted.status).toBe(202);
    await landPayment(chain.rpcUrl, first);
    await soon(database, async () => expect(runner.deliveries).toHaveLength(2));
    await eventually(async () => {
      const headers = { ...header(first), prefer: 'wait=5' };
      const late = await gateway.post(job, { body: 'FIRST', headers });
      expect(late).toMatchObject({ status: 200, json: { quote_digest: digestOf(first) } });
      expect(late.json.call_id).not.toBe(accepted.json.call_id);
      expect(text(late.json.result)).toBe('did FIRST');
    });
    expect((await receiptOf(gateway, second)).call_id).toBe(accepted.json.call_id);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('and has landed since is never refused when it is presented again', async () => {
    const { proxy, database, gateway } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.settle = failsBeforeBroadcast;
    expect((await pay(gateway, payment)).status).toBe(402);
    await landPayment(chain.rpcUrl, payment);
    // at once: the resolver looks in its own time
    expect(await pay(gateway, payment)).toMatchObject({
      status: 202,
      json: { quote_digest: digestOf(payment) },
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is watched until it can never land, and the status says how old the oldest is, and the oldest without an outcome', async () => {
    const { proxy, database, gateway } = await behindProxy(chain);
    proxy.faults.settle = failsBeforeBroadcast;
    expect((await pay(gateway, await quoteAndSign(gateway, job, 'x'))).status).toBe(402);
    proxy.faults.settle = 'server_error';
    expect((await pay(gateway, await quoteAndSign(gateway, job, 'x'))).status).toBe(503);
    await database.asOwner((owner) =>
      owner.query(
        `update tollbook.call set created_at = created_at - case status when 'watched' then interval '2 minutes' else interval '1 minute' end`,
      ),
    );
    const token = await bearerOf(database, ['status:read']);
    await eventually(async () => {
      const { outbox } = (await gateway.get('/status', token)).json.jobs;
      const ages = [outbox.oldest_watched_ms, outbox.oldest_undecided_ms];
      expect(ages.map((ms) => ms && Math.floor(ms / 60_000))).toEqual([2, 1]);
    });
  });

  test('is pending, and not refused again, while its chain does not answer', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { proxy, gateway } = await behindProxy(chain, { rpcUrl: rpc.url });
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.settle = failsBeforeBroadcast;
    expect((await pay(gateway, payment)).status).toBe(402);
    rpc.lie = () => ({ error: { code: -32_000, message: 'not now' } });
    expect(await pay(gateway, payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
  });
});

describe('a verdict of failure', () => {
  test('that is recorded after another gateway has settled the payment again is never answered with 402', async () => {
    const { proxy, database, setup } = await behindProxy(chain);
    const link = await startSilentProxy(database);
    const stalled = await startTestGateway({ ...setup, database: { ...database, url: link.url } });
    const payment = await quoteAndSign(stalled, job, 'x');
    const before = await chain.balance(payTo);
    const verdict = Promise.withResolvers<object>();
    proxy.faults.settle = { answer: verdict.promise };
    const answer = pay(stalled, payment);
    await eventually(() => expect(proxy.seen).toContain('settle'));
    // the first gateway gets its verdict and cannot record it; the other one settles the payment and gets no answer
    link.stall();
    verdict.resolve(failsBeforeBroadcast.answer);
    proxy.faults.settle = 'cut_after';
    await database.moveClock(60);
    await eventually(async () => expect(await chain.balance(payTo)).toBe(before + price));
    link.resume();
    const pending = { status: 503, json: { code: 'settlement_pending' } };
    expect(await answer).toMatchObject(pending);
    expect(await pay(stalled, payment)).toMatchObject(pending);
    await database.moveClock(120);
    await reaches(stalled, payment, 'completed');
    expect(await chain.balance(payTo)).toBe(before + price);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});

describe('a payment that a third party landed before it reached the gateway', () => {
  test('is accepted and charged once', async () => {
    const { gateway, runner, database } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    await landPayment(chain.rpcUrl, payment);
    expect((await pay(gateway, payment)).status).toBe(202);
    await reaches(gateway, payment, 'completed', database);
    expect(runner.deliveries).toHaveLength(1);
    expect(await chain.balance(payTo)).toBe(before + price);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is accepted although its time to be settled is over', async () => {
    const { gateway, database } = await behindProxy(chain);
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const payment = await signOffer(offer, { signed: { validBefore: inMinutes(4) } });
    // settling takes 26 s at most
    await database.moveClock(225);
    expect(await pay(gateway, payment)).toMatchObject({
      status: 402,
      json: { reason: 'authorization_expires_too_soon' },
    });
    await landPayment(chain.rpcUrl, payment);
    expect((await pay(gateway, payment)).status).toBe(202);
    await reaches(gateway, payment, 'completed');
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is accepted although its quote has expired meanwhile', async () => {
    const { gateway, database } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    const late = await quoteAndSign(gateway, job, 'x');
    await landPayment(chain.rpcUrl, payment);
    await database.moveClock(3_600);
    expect((await pay(gateway, payment)).status).toBe(202);
    await reaches(gateway, payment, 'completed');
    expect(await pay(gateway, late)).toMatchObject({ status: 402, json: { code: 'quote_expired' } });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is 503, never 402, while the chain does not show its use, and is accepted when it does', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { database, gateway } = await behindProxy(chain, { rpcUrl: rpc.url });
    const payment = await quoteAndSign(gateway, job, 'x');
    await landPayment(chain.rpcUrl, payment);
    rpc.lie = ({ method }) =>
      method === 'eth_getLogs' ? { error: { code: -32_000, message: 'not now' } } : undefined;
    const unclear = await pay(gateway, payment);
    expect(unclear).toMatchObject({ status: 503, json: { code: 'payment_use_unknown' } });
    expect(unclear.headers.get('retry-after')).toBe('5');
    expect(await claimsAndCalls(database)).toEqual([]);
    rpc.lie = () => undefined;
    expect((await pay(gateway, payment)).status).toBe(202);
    await reaches(gateway, payment, 'completed');
  });

  test('and whose payer withdrew the authorization is 402 as soon as the chain shows that, and claims nothing', async () => {
    const { database, gateway } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x');
    await cancelPayment(chain.rpcUrl, payment);
    expect(await pay(gateway, payment)).toMatchObject({
      status: 402,
      json: { code: 'payment_invalid', reason: 'authorization_canceled' },
    });
    expect(await claimsAndCalls(database)).toEqual([]);
  });
});

describe('a payment that the facilitator calls invalid', () => {
  const invalid = { answer: { isValid: false, invalidReason: 'invalid_exact_evm_insufficient_balance' } };

  test('while its chain does not answer is 503 and claims nothing, so that unfunded wallets hold no calls', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { database, gateway, proxy } = await behindProxy(chain, { rpcUrl: rpc.url });
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.verify = invalid;
    rpc.lie = () => ({ error: { code: -32_000, message: 'not now' } });
    expect(await pay(gateway, payment)).toMatchObject({
      status: 503,
      json: { code: 'payment_use_unknown' },
    });
    expect(await claimsAndCalls(database)).toEqual([]);
    rpc.lie = () => undefined;
    expect((await pay(gateway, payment)).status).toBe(402);
  });
});

async function claimsAndCalls(database: TestDatabase): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select tollbook.stream_name(stream) from tollbook.claim union all select status from tollbook.call`,
  );
  return rows;
}

async function moveClocks(database: TestDatabase, secs: number): Promise<void> {
  await moveChainClock(chain, secs);
  await database.moveClock(secs);
}

/** The last ones: they move the clock of the chain, which all share. */
describe('the expiry of the authorization', () => {
  test('of a settlement of unknown outcome fails it once the chain is final beyond that, and the payer gets a 402', async () => {
    const { proxy, gateway, typesOf, database } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x', { signed: { validBefore: inMinutes(2) } });
    proxy.faults.settle = 'server_error';
    expect((await pay(gateway, payment)).status).toBe(503);
    await moveClocks(database, 130);
    await reaches(gateway, payment, 'settlement_failed', database);
    expect((await receiptOf(gateway, payment)).paid).toBe(false);
    expect(await pay(gateway, payment)).toMatchObject({
      status: 402,
      json: { reason: 'authorization_expired' },
    });
    expect((await typesOf(digestOf(payment))).at(-1)).toBe('settlement_failed');
    const { rows } = await database.pool.query('select * from tollbook.call');
    expect(rows).toEqual([]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('of a payment that failed before anything was broadcast ends the watch for it', async () => {
    const { proxy, database, gateway, typesOf } = await behindProxy(chain);
    const payment = await quoteAndSign(gateway, job, 'x', { signed: { validBefore: inMinutes(5.5) } });
    proxy.faults.settle = failsBeforeBroadcast;
    expect((await pay(gateway, payment)).status).toBe(402);
    proxy.faults.settle = 'pass';
    await moveClocks(database, 340);
    await soon(database, async () =>
      expect((await database.pool.query('select * from tollbook.call')).rows).toEqual([]),
    );
    const types = await typesOf(digestOf(payment));
    expect(types.filter((type) => type === 'settlement_failed')).toHaveLength(1);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});
