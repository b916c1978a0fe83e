import { createTestClient, http } from 'viem';
import { describe, expect, test } from 'vitest';
import { reverseTopUp, topUp } from '../../../../src/jobs/use-cases/top-ups/top-up.ts';
import type { Lane } from '../../../../src/ledger/store/lane.ts';
import { refundClaim } from '../../../../src/payments/store/recorded-claims.ts';
import { leaseTopUps } from '../../../../src/accounts/store/top-ups.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { expectBooks, laneOn } from '../../../support/credit.ts';
import { useChain } from '../../../support/devnet.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { payTo } from '../../../support/gateway.ts';
import { newWallet, signInByWallet } from '../../../support/identity.ts';
import { header, offerOf, quoteAndSign, signOffer } from '../../../support/payer.ts';
import { ask, paidModel } from '../../../support/chat-gateway.ts';
import {
  buyCredit,
  eventsOf,
  fundedWallet,
  signedIn,
  startTopUpGateway,
  topUpJob,
} from '../../../support/top-up.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}`;
const lie = { answer: { success: true, transaction: nowhere, network: 'eip155:84532' } };

async function facilitatorThatLies() {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  return proxy;
}

test('credit paid over x402 with the official client can be spent on chat after signing in with the wallet', async () => {
  const gateway = await startTopUpGateway(chain);
  const wallet = await fundedWallet(chain);
  const { result, callId, digest } = await buyCredit(gateway.url, wallet.key);
  const { browser, userId } = await signedIn(gateway, wallet);
  expect(result).toEqual({ account: `user:${userId}`, credited: '10', balance: '10', currency: 'USD' });
  expect((await browser.get('/v1/credits')).json).toEqual({ balance: '10', held: '0', total_used: '0' });

  const answer = await browser.post('/v1/chat/completions', ask('hello, model', paidModel));
  expect(answer.status).toBe(200);
  await eventually(async () => {
    const { balance, held, total_used: used } = (await browser.get('/v1/credits')).json;
    expect([held, Number(used) > 0]).toEqual(['0', true]);
    expect(Number(balance) + Number(used)).toBeCloseTo(10, 9);
  });
  const [event, ...more] = await eventsOf(gateway.database, 'credit_topped_up');
  expect(more).toEqual([]);
  expect(event?.data).toMatchObject({
    amount_micros: '10000000',
    call_id: callId,
    quote_digest: digest,
    network: 'eip155:84532',
    asset: chain.token,
    symbol: 'USDC',
    decimals: 6,
    atoms: '10000000',
    payer: wallet.payer,
  });
  await expectBooks(gateway.database);
});

test('a wallet that signed in before, or tops up again, has one account', async () => {
  const gateway = await startTopUpGateway(chain);
  const wallet = await fundedWallet(chain);
  const { browser, userId } = await signedIn(gateway, wallet);
  const first = await buyCredit(gateway.url, wallet.key, 1);
  const second = await buyCredit(gateway.url, wallet.key, 0);
  expect([first.result.account, second.result.account]).toEqual([`user:${userId}`, `user:${userId}`]);
  expect([first.result.credited, second.result.balance]).toEqual(['1.000001', '11.000001']);
  expect((await browser.get('/v1/credits')).json.balance).toBe('11.000001');
  await expectBooks(gateway.database);
});

test('a wallet that signs in twenty times while its first top-up arrives has one user and one account', async () => {
  const gateway = await startTopUpGateway(chain);
  const wallet = await fundedWallet(chain);
  const [{ result }, ...people] = await Promise.all([
    buyCredit(gateway.url, wallet.key),
    ...Array.from({ length: 20 }, () => signedIn(gateway, wallet)),
  ]);
  expect(new Set(people.map(({ userId }) => `user:${userId}`))).toEqual(new Set([result.account]));
  const opened = await eventsOf(gateway.database, 'credit_account_opened');
  expect(opened.map(({ data }) => data.name)).toEqual([result.account]);
  await expectBooks(gateway.database);
});

test('a token is credited at its configured rate, rounded down', async () => {
  const gateway = await startTopUpGateway(chain);
  const payment = await quoteAndSign(gateway, topUpJob, 'x', { option: 1 });
  expect((await gateway.post(topUpJob, { body: 'x', headers: header(payment) })).status).toBe(202);
  await eventually(async () => {
    const [event] = await eventsOf(gateway.database, 'credit_topped_up');
    expect(event?.data).toMatchObject({ symbol: 'EURC', atoms: '10000000', amount_micros: '10812345' });
  });
});

/** Appends what gives the one payment of a database back, as `refunds record` does. */
async function appendRefund(
  database: TestDatabase,
  lane: Lane,
  stream: string,
  change: { readonly amount?: string; readonly log_index?: number } = {},
): Promise<void> {
  const [settled] = await eventsOf(database, 'payment_settled');
  if (!settled) throw new Error('nothing was paid');
  const { network, asset, payer, payment_nonce, amount } = settled.data;
  const place = { transaction: nowhere, block_number: '9', block_hash: nowhere, log_index: 1 };
  const named = { network, asset, payer, payment_nonce, amount };
  const data = { ...named, refunded_from: payTo, refunded_to: payer, ...place, operator: 'ann', ...change };
  const claims = [refundClaim(data, payment_nonce)];
  const { outcome } = await lane.append({ stream, events: [{ type: 'refunded', data }], claims });
  expect(outcome).toBe('ok');
}

describe('one payment gives credit once', () => {
  test('when its process was killed after the credit, or other processes serve its call too', async () => {
    const database = await createDatabase();
    const wallet = await fundedWallet(chain);
    // no process serves the job yet: its call waits
    const seller = await startTopUpGateway(chain, { database, isServed: false });
    const payment = await quoteAndSign(seller, topUpJob, 'x', { account: wallet.account });
    const paid = await seller.post(topUpJob, { body: 'x', headers: header(payment) });
    expect(paid.status).toBe(202);
    const jobs = [{ serviceId: 9, jobIndex: 0 }];
    const asked = { max: 5, leaseSecs: 60, isProven: true, maxAgeSecs: 604_800 };
    const [call, ...others] = await leaseTopUps(database.pool, jobs, asked);
    expect([call?.callId, others]).toEqual([paid.json.call_id, []]);
    expect(await leaseTopUps(database.pool, jobs, asked)).toEqual([]);
    const ledger = { ...database, lane: laneOn(database), log: silent };
    const facts = factsOf(paid.json.call_id, paid.json.quote_digest, wallet.payer);
    // twenty processes credit the call at once, and all end before they complete it
    const given = await Promise.all(Array.from({ length: 20 }, () => topUp(ledger, facts, 10_000_000n)));
    const account = (given[0] as { account: string }).account;
    const credited = { kind: 'credited', account, creditedMicros: 10_000_000n, balanceMicros: 10_000_000n };
    expect(given).toEqual(Array.from({ length: 20 }, () => credited));

    // the call is too old by then: it is completed all the same, since its credit was given
    await database.moveClock(8 * 86_400);
    const gateway = await startTopUpGateway(chain, { database });
    const receipt = async () =>
      (
        await gateway.get(`/x402/receipts/${paid.json.quote_digest}`, {
          authorization: `Bearer ${paid.json.receipt_token}`,
        })
      ).json;
    await eventually(async () => expect((await receipt()).state).toBe('completed'));
    const result = JSON.parse(Buffer.from((await receipt()).result.body_base64, 'base64').toString());
    expect(result).toMatchObject({ credited: '10', balance: '10' });
    expect(await topUp(ledger, facts, 10_000_000n)).toMatchObject({ balanceMicros: 10_000_000n });
    expect(await eventsOf(database, 'credit_topped_up')).toHaveLength(1);
    await expectBooks(database);
  });

  test('and its call with credit is not given up after any number of lost attempts', async () => {
    const { database, facts, ledger } = await leasedTopUp();
    await topUp(ledger, facts, 10_000_000n);
    await database.asOwner((owner) => owner.query('update tollbook.call set failures = 1000'));
    await database.moveClock(61);
    await startTopUpGateway(chain, { database });
    await eventually(async () => expect(await eventsOf(database, 'completed')).toHaveLength(1));
    expect(await eventsOf(database, 'dead_lettered')).toEqual([]);
    await expectBooks(database);
  });

  test('whose credit was reversed gives none again: its call stays a dead letter, due as a refund', async () => {
    const { database, facts, ledger } = await leasedTopUp();
    await topUp(ledger, facts, 10_000_000n);
    await reverseTopUp(ledger, { call_id: facts.call_id, quote_digest: facts.quote_digest });
    expect(await topUp(ledger, facts, 10_000_000n)).toEqual({ kind: 'refused' });
    await database.moveClock(61);
    await startTopUpGateway(chain, { database });
    await eventually(async () => {
      const [dead] = await eventsOf(database, 'dead_lettered');
      expect(dead?.data.reason).toBe('credit_refused');
    });
    await expectBooks(database);
  });

  test('and none when it was refunded meanwhile', async () => {
    const { database, facts, ledger } = await leasedTopUp();
    await appendRefund(database, ledger.lane, facts.quote_digest);
    await database.moveClock(61);
    await startTopUpGateway(chain, { database });
    await eventually(async () => {
      const [dead] = await eventsOf(database, 'dead_lettered');
      expect(dead?.data.reason).toBe('refunded');
    });
    expect(await eventsOf(database, 'credit_topped_up')).toEqual([]);
    await expectBooks(database);
  });

  test('which is reversed when its payment is refunded', async () => {
    const { database, facts, ledger } = await leasedTopUp();
    await database.moveClock(61);
    await startTopUpGateway(chain, { database });
    await eventually(async () => expect(await eventsOf(database, 'completed')).toHaveLength(1));
    await appendRefund(database, ledger.lane, facts.quote_digest);
    await eventually(async () => {
      const [taken] = await eventsOf(database, 'credit_reversed');
      expect(taken?.data).toMatchObject({ amount_micros: '10000000', missing_micros: '0' });
    });
    await expectBooks(database);
  });

  test('which is reversed in proportion to each part of its payment that is refunded', async () => {
    const { database, facts, ledger } = await leasedTopUp();
    await database.moveClock(61);
    await startTopUpGateway(chain, { database });
    await eventually(async () => expect(await eventsOf(database, 'completed')).toHaveLength(1));
    const refund = (amount: string, log_index: number) =>
      appendRefund(database, ledger.lane, facts.quote_digest, { amount, log_index });
    await refund('3333333', 1);
    const taken = async () =>
      (await eventsOf(database, 'credit_reversed')).map(({ data }) => [data.amount_micros, data.atoms]);
    await eventually(async () => expect(await taken()).toEqual([['3333333', '3333333']]));
    await refund('6666667', 2);
    await eventually(async () =>
      expect(await taken()).toEqual([
        ['3333333', '3333333'],
        ['6666667', undefined],
      ]),
    );
    await reverseTopUp(ledger, { call_id: facts.call_id, quote_digest: facts.quote_digest });
    expect(await taken()).toHaveLength(2);
    await expectBooks(database);
  });

  test('however often it is sent, and to whichever process', async () => {
    const database = await createDatabase();
    const start = () => startTopUpGateway(chain, { database });
    const [first, second] = await Promise.all([start(), start()]);
    const wallet = await fundedWallet(chain);
    const payment = await signOffer(offerOf(await first.post(topUpJob, { body: 'x' })), {
      account: wallet.account,
    });
    const sent = Array.from({ length: 10 }, (_, at) =>
      (at % 2 === 0 ? first : second).post(topUpJob, { body: 'x', headers: header(payment) }),
    );
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses).toContain(202);
    await eventually(async () => expect(await eventsOf(database, 'completed')).toHaveLength(1));
    const [event, ...more] = await eventsOf(database, 'credit_topped_up');
    expect([event?.data.amount_micros, more]).toEqual(['10000000', []]);
    await expectBooks(database);
  });
});

describe('a settlement reported only by the facilitator', () => {
  test('gives no credit, and its call is withdrawn when the report was false', async () => {
    const proxy = await facilitatorThatLies();
    const top = 'confirm = "after"';
    const gateway = await startTopUpGateway(chain, { facilitatorUrl: proxy.url, top });
    const validBefore = String(Math.floor(Date.now() / 1_000) + 90);
    const payment = await quoteAndSign(gateway, topUpJob, 'x', { signed: { validBefore } });
    proxy.faults.settle = lie;
    const paid = await gateway.post(topUpJob, { body: 'x', headers: header(payment) });
    expect(paid.status).toBe(202);
    await eventually(async () => {
      const { rows } = await gateway.database.pool.query(
        'select from tollbook.follow_up where first_search_block is not null',
      );
      expect(rows).toHaveLength(1);
    });
    // as long as a node may not know a transaction
    await gateway.database.moveClock(60);
    await eventually(async () => {
      const [event] = await eventsOf(gateway.database, 'settlement_disproved');
      expect(event?.data).toMatchObject({ call: 'withdrawn' });
    });
    // until the authorization has expired on the chain it could still be settled
    const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) });
    await node.increaseTime({ seconds: 120 });
    await node.mine({ blocks: 4 });
    // the older a payment is, the later it is looked at again
    await gateway.database.moveClock(600);
    await eventually(async () =>
      expect((await gateway.get(`/x402/receipts/${paid.json.quote_digest}`)).json.state).toBe(
        'settlement_failed',
      ),
    );
    expect(await eventsOf(gateway.database, 'credit_topped_up')).toEqual([]);
    const { rows } = await gateway.database.pool.query('select from tollbook.account');
    expect(rows).toEqual([]);
    await expectBooks(gateway.database);
  });

  test('gives credit once the chain confirms it', async () => {
    const gateway = await startTopUpGateway(chain, { top: 'confirm = "after"' });
    const wallet = await fundedWallet(chain);
    const { result } = await buyCredit(gateway.url, wallet.key);
    expect(result.credited).toBe('10');
    const [confirmed, given] = [
      await eventsOf(gateway.database, 'settlement_confirmed'),
      await eventsOf(gateway.database, 'credit_topped_up'),
    ];
    expect(confirmed[0]?.seq).toBeLessThan(given[0]?.seq ?? 0);
  });

  test('gives credit when the operator has switched confirmation off', async () => {
    const gateway = await startTopUpGateway(chain, { top: 'confirm = "never"' });
    const wallet = await fundedWallet(chain);
    expect((await buyCredit(gateway.url, wallet.key)).result.credited).toBe('10');
    expect(await eventsOf(gateway.database, 'settlement_confirmed')).toEqual([]);
  });
});

test('a wallet that never paid has its own account with a balance of zero', async () => {
  const gateway = await startTopUpGateway(chain);
  await buyCredit(gateway.url, (await fundedWallet(chain)).key);
  const browser = gateway.browser();
  expect((await signInByWallet(browser, newWallet())).status).toBe(200);
  expect((await browser.get('/v1/credits')).json.balance).toBe('0');
});

/** A top-up that was paid and leased by a process that is not heard of any more. */
async function leasedTopUp() {
  const database = await createDatabase();
  const wallet = await fundedWallet(chain);
  const seller = await startTopUpGateway(chain, { database, isServed: false });
  const payment = await quoteAndSign(seller, topUpJob, 'x', { account: wallet.account });
  const paid = await seller.post(topUpJob, { body: 'x', headers: header(payment) });
  expect(paid.status).toBe(202);
  const jobs = [{ serviceId: 9, jobIndex: 0 }];
  const leased = await leaseTopUps(database.pool, jobs, {
    max: 1,
    leaseSecs: 60,
    isProven: true,
    maxAgeSecs: 604_800,
  });
  expect(leased).toHaveLength(1);
  const facts = factsOf(paid.json.call_id, paid.json.quote_digest, wallet.payer);
  return { database, facts, ledger: { ...database, lane: laneOn(database), log: silent } };
}

const silent = { info: () => {}, warn: () => {}, error: () => {} };

function factsOf(callId: number, digest: string, payer: string) {
  return {
    call_id: callId,
    quote_digest: digest,
    network: 'eip155:84532',
    asset: chain.token,
    symbol: 'USDC',
    decimals: 6,
    atoms: '10000000',
    payer,
  };
}
