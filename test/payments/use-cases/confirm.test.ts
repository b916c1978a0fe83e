import { describe, expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { quoteAndSign } from '../../support/payer.ts';
import { tollbook } from '../../support/program.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import type { Delivery, Reaction } from '../../support/runner.ts';
import { askNode } from '../../support/tokens.ts';
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
const successOf = (transaction: string) => ({ success: true, transaction, network: 'eip155:84532' });
/** A chain that shows nothing is not waited for. */
const soonConfirmed = { jobs: { confirmTimeoutMs: 200 } };
const nowhere = `0x${'a'.repeat(64)}`;

/** A payment that the facilitator calls settled by a transaction that is nowhere, once that is disproved. */
async function lied(confirm: string, isServed: boolean) {
  const { url, alerts } = await startReceiver();
  const setup = await behindProxy(chain, {
    top: `confirm = "${confirm}"`,
    constants: soonConfirmed,
    tables: `[alerts]\nwebhook = "${url}"`,
    isServed,
  });
  const { proxy, database, gateway, typesOf } = setup;
  const validBefore = inMinutes(4);
  const payment = await quoteAndSign(gateway, job, 'x', { signed: { validBefore } });
  const before = await chain.balance(payTo);
  proxy.faults.settle = { answer: successOf(nowhere) };
  expect((await pay(gateway, payment)).status).toBe(202);
  await database.moveClock(20);
  await soon(database, async () =>
    expect(await typesOf(digestOf(payment))).toContain('settlement_disproved'),
  );
  await eventually(() => expect(alerts.map(({ type }) => type)).toContain('settlement_disproved'));
  expect((await receiptOf(gateway, payment)).paid).not.toBe(true);
  return { ...setup, payment, before };
}

describe('with confirm = "required"', () => {
  test("a facilitator's false report is never accepted: the payment is settled again, and 202 once the chain shows it", async () => {
    const { proxy, database, gateway, runner, typesOf } = await behindProxy(chain, {
      top: 'confirm = "required"',
      constants: soonConfirmed,
    });
    const payment = await quoteAndSign(gateway, job, 'x');
    const before = await chain.balance(payTo);
    proxy.faults.settle = { answer: successOf(nowhere) };
    expect(await pay(gateway, payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    expect(await typesOf(digestOf(payment))).not.toContain('payment_settled');
    expect(runner.deliveries).toHaveLength(0);
    proxy.faults.settle = 'pass';
    await database.moveClock(6);
    await reaches(gateway, payment, 'completed', database);
    expect((await pay(gateway, payment)).status).toBe(202);
    expect(await chain.balance(payTo)).toBe(before + price);
    const settled = (await allEvents(database.db)).find(({ type }) => type === 'payment_settled');
    expect(settled?.data).toMatchObject({ evidence: 'chain' });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('a payment is pending while its chain does not answer', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { database, gateway } = await behindProxy(chain, {
      rpcUrl: rpc.url,
      top: 'confirm = "required"',
      constants: soonConfirmed,
    });
    const payment = await quoteAndSign(gateway, job, 'x');
    rpc.lie = () => ({ error: { code: -32_000, message: 'not now' } });
    expect(await pay(gateway, payment)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
    rpc.lie = () => undefined;
    await database.moveClock(6);
    await reaches(gateway, payment, 'completed', database);
  });
});

describe("a facilitator's false report", () => {
  test('is disproved and alerted, and its call is kept if a runner has it', async () => {
    const { payment, database, gateway, runner, before, proxy } = await lied('after', true);
    expect(runner.deliveries).toHaveLength(1);
    const { data } = (await allEvents(database.db)).find(({ type }) => type === 'settlement_disproved') ?? {};
    expect(data).toMatchObject({ call: 'kept', reason: 'not_on_chain', transaction: nowhere });
    // asked once more, an honest answer makes it good after all, and nothing is delivered twice
    proxy.faults.settle = 'pass';
    await reaches(gateway, payment, 'completed', database);
    expect(await chain.balance(payTo)).toBe(before + price);
    expect(runner.deliveries).toHaveLength(1);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('about the transaction of an honest payment is corrected from the chain', async () => {
    const { proxy, database, gateway, typesOf } = await behindProxy(chain, { top: 'confirm = "after"' });
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.settle = { change: (answer) => ({ ...answer, transaction: nowhere }) };
    expect((await pay(gateway, payment)).status).toBe(202);
    await eventually(async () => expect(await typesOf(digestOf(payment))).toContain('settlement_confirmed'));
    expect(await typesOf(digestOf(payment))).not.toContain('settlement_disproved');
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});

/** A payment that the facilitator calls settled by a transaction that is nowhere, delivered on its word. */
async function deliveredUnpaid(react: (delivery: Delivery) => Reaction | Promise<Reaction>) {
  const top = 'confirm = "after"\nmax_timeout_secs = 3600';
  const setup = await behindProxy(chain, { top, react });
  const { proxy, database, gateway, runner, typesOf } = setup;
  const payment = await quoteAndSign(gateway, job, 'x', {
    signed: { validBefore: inMinutes(50) },
  });
  proxy.faults.settle = { answer: successOf(nowhere) };
  expect((await pay(gateway, payment)).status).toBe(202);
  await eventually(() => expect(runner.deliveries).toHaveLength(1));
  proxy.faults.settle = 'server_error';
  const types = () => typesOf(digestOf(payment));
  const disproved = async () => {
    await database.moveClock(20);
    await soon(database, async () => expect(await types()).toContain('settlement_disproved'));
    return (await allEvents(database.db)).find(({ type }) => type === 'settlement_disproved')?.data;
  };
  const statuses = async () =>
    (await database.pool.query<{ status: string }>('select status from tollbook.call')).rows.map(
      ({ status }) => status,
    );
  return { ...setup, payment, types, disproved, statuses };
}

async function expectSecondAttemptOncePaid(setup: Awaited<ReturnType<typeof deliveredUnpaid>>) {
  const { proxy, database, gateway, runner, payment } = setup;
  await database.moveClock(700);
  expect(await setup.statuses()).toEqual(['pending']);
  expect(runner.deliveries).toHaveLength(1);
  proxy.faults.settle = 'pass';
  await reaches(gateway, payment, 'completed', database);
  expect(runner.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
}

describe('the call of a payment that is disproved', () => {
  const later = { status: 429, headers: { 'retry-after': '600' } };

  test('is not delivered again while it waits for its next attempt, and is as soon as its payment is settled', async () => {
    const setup = await deliveredUnpaid(({ attempt }) => (attempt === 1 ? later : { status: 200 }));
    await eventually(async () => expect(await setup.types()).toContain('delivery_failed'));
    expect(await setup.disproved()).toMatchObject({ call: 'withdrawn' });
    await expectSecondAttemptOncePaid(setup);
  });

  test('is not delivered again after the attempt that its runner has, and is as soon as its payment is settled', async () => {
    const held = Promise.withResolvers<Reaction>();
    const setup = await deliveredUnpaid(({ attempt }) => (attempt === 1 ? held.promise : { status: 200 }));
    expect(await setup.disproved()).toMatchObject({ call: 'kept' });
    expect(await setup.statuses()).toEqual(['unpaid']);
    held.resolve(later);
    await eventually(async () => expect(await setup.types()).toContain('delivery_failed'));
    await expectSecondAttemptOncePaid(setup);
  });

  test('is delivered once where its payment is settled while its runner still has it', async () => {
    const held = Promise.withResolvers<Reaction>();
    const setup = await deliveredUnpaid(() => held.promise);
    const { proxy, database, gateway, runner, payment } = setup;
    await setup.disproved();
    proxy.faults.settle = 'pass';
    await soon(database, async () => expect(await setup.statuses()).toEqual(['leased']));
    held.resolve({ status: 200 });
    await reaches(gateway, payment, 'completed', database);
    expect(runner.deliveries).toHaveLength(1);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});

test('a settlement whose block is replaced before it is final is open again, and is found in its new block', async () => {
  const { database, gateway, runner, typesOf } = await behindProxy(chain, { isServed: false });
  const snapshot = await askNode(chain.rpcUrl, 'evm_snapshot', []);
  const payment = await quoteAndSign(gateway, job, 'x');
  expect((await pay(gateway, payment)).status).toBe(202);
  await askNode(chain.rpcUrl, 'evm_revert', [snapshot]);
  await eventually(async () => expect(await typesOf(digestOf(payment))).toContain('settlement_reorged'));
  await reaches(gateway, payment, 'enqueued', database);
  const types = await typesOf(digestOf(payment));
  expect(types.filter((type) => type === 'payment_settled')).toHaveLength(2);
  expect(runner.deliveries).toHaveLength(0);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const calls = events.filter(({ type }) => type === 'enqueued' || type === 'enqueued_again');
  expect(calls).toMatchObject([
    { type: 'enqueued', data: { call_id: 1 } },
    { type: 'enqueued_again', data: { call_id: 1 } },
  ]);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, settled: 2 });
});

test('a lagging node without the block of a delivered payment reopens nothing', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const { database, gateway, typesOf } = await behindProxy(chain, { rpcUrl: rpc.url });
  const payment = await quoteAndSign(gateway, job, 'x');
  let asked = 0;
  rpc.lie = ({ method, params }) => {
    const isHeight = method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x');
    if (isHeight) asked += 1;
    return isHeight ? { result: null } : undefined;
  };
  expect((await pay(gateway, payment)).status).toBe(202);
  await reaches(gateway, payment, 'completed', database);
  await eventually(() => expect(asked).toBeGreaterThan(1));
  rpc.lie = () => undefined;
  await soon(database, async () =>
    expect((await database.pool.query('select * from tollbook.follow_up')).rows).toEqual([]),
  );
  expect(await typesOf(digestOf(payment))).not.toContain('settlement_reorged');
  expect((await receiptOf(gateway, payment)).paid).toBe(true);
});

test('a delivered payment whose block is reorged out is open again, is listed, and is settled again in its new block', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const { database, gateway, runner, typesOf } = await behindProxy(chain, { rpcUrl: rpc.url });
  const payment = await quoteAndSign(gateway, job, 'x');
  // until a runner has the call, the node lags: a reorg seen earlier would be settled again from the transaction
  const isDelivered = () => runner.deliveries.length > 0;
  rpc.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x')
      ? { result: isDelivered() ? { number: params[0], hash: nowhere, timestamp: '0x1' } : null }
      : method === 'eth_getTransactionByHash' && isDelivered()
        ? { result: null }
        : method === 'eth_getLogs' && isDelivered()
          ? { error: { code: -32_000, message: 'not now' } }
          : undefined;
  expect((await pay(gateway, payment)).status).toBe(202);
  await eventually(async () => expect(await typesOf(digestOf(payment))).toContain('settlement_reorged'));
  // a worker collects what the command lists
  await eventually(async () =>
    expect((await tollbook(['settlements'], { DATABASE_URL: database.url })).stdout).toContain(
      '(its call is with a runner)',
    ),
  );
  rpc.lie = () => undefined;
  await reaches(gateway, payment, 'completed', database);
  await soon(database, async () =>
    expect((await database.pool.query('select * from tollbook.follow_up')).rows).toEqual([]),
  );
  expect(runner.deliveries).toHaveLength(1);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test("an RPC of another chain changes nothing: the facilitator's settlement remains recorded and no call is withdrawn", async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const { database, gateway, typesOf } = await behindProxy(chain, {
    rpcUrl: rpc.url,
    constants: soonConfirmed,
  });
  // at the start it would have ended the gateway
  rpc.lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : undefined);
  const payment = await quoteAndSign(gateway, job, 'x');
  expect((await pay(gateway, payment)).status).toBe(202);
  await reaches(gateway, payment, 'completed', database);
  expect(await typesOf(digestOf(payment))).not.toContain('settlement_confirmed');
  rpc.lie = () => undefined;
  await soon(database, async () =>
    expect(await typesOf(digestOf(payment))).toContain('settlement_confirmed'),
  );
});

// the last one: it moves the clock of the chain, which all share
test("a facilitator's false report is disproved and alerted, and its call is withdrawn if no runner has it", async () => {
  const { payment, database, gateway, before } = await lied('before', false);
  await moveChainClock(chain, 250);
  await database.moveClock(250);
  await reaches(gateway, payment, 'settlement_failed', database);
  expect((await receiptOf(gateway, payment)).paid).toBe(false);
  const { rows } = await database.pool.query('select * from tollbook.call');
  expect(rows).toEqual([]);
  expect(await chain.balance(payTo)).toBe(before);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
