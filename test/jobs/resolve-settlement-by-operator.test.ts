import { describe, expect, test } from 'vitest';
import { useChain } from '../support/devnet.ts';
import { landPayment } from '../support/onchain.ts';
import { quoteAndSign } from '../support/payer.ts';
import { tollbook } from '../support/program.ts';
import { behindProxy, digestOf, job, pay, reaches, receiptOf } from './settlement-support.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}`;

function resolve(database: { url: string }, ...args: string[]) {
  return tollbook(['settlements', 'resolve', ...args], { DATABASE_URL: database.url });
}

/** A payment whose settlement stays open. */
async function openPayment() {
  const setup = await behindProxy(chain);
  const payment = await quoteAndSign(setup.gateway, job, 'x');
  setup.proxy.faults.settle = 'server_error';
  expect((await pay(setup.gateway, payment)).status).toBe(503);
  return { ...setup, payment };
}

describe("an operator's decision", () => {
  const words = ['--evidence', 'seen in the explorer', '--by', 'ada'];

  test("that a settlement is paid is recorded with the operator's name and enqueues its call", async () => {
    const { database, gateway, payment, typesOf } = await openPayment();
    const ended = await resolve(database, digestOf(payment), '--paid', nowhere, ...words);
    expect(ended).toMatchObject({ code: 0 });
    await reaches(gateway, payment, 'completed', database);
    expect(await typesOf(digestOf(payment))).toContain('operator_settlement_resolved');
    const again = await resolve(database, digestOf(payment), '--unpaid', ...words);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('no settlement of that quote is open');
  });

  test('that a settlement is unpaid fails it, and a transfer that still lands gets its call', async () => {
    const { database, gateway, payment } = await openPayment();
    await database.moveClock(400);
    expect((await resolve(database, digestOf(payment), '--unpaid', ...words)).code).toBe(0);
    expect((await receiptOf(gateway, payment)).state).toBe('settlement_failed');
    await landPayment(chain.rpcUrl, payment);
    await database.moveClock(600);
    await reaches(gateway, payment, 'completed', database);
  });

  test('that a settlement is unpaid is refused while its authorization can still be settled', async () => {
    const { database, gateway, payment } = await openPayment();
    const ended = await resolve(database, digestOf(payment), '--unpaid', ...words);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('its authorization has not expired');
    expect((await receiptOf(gateway, payment)).state).toBe('settlement_unknown');
  });

  test.each([
    [['nonsense', '--unpaid', ...words], 'name the quote of the settlement'],
    [[nowhere, ...words], 'give either --paid TRANSACTION or --unpaid'],
    [[nowhere, '--paid', nowhere, '--unpaid', ...words], 'give either --paid TRANSACTION or --unpaid'],
    [[nowhere, '--paid', '0x12', ...words], 'a transaction is'],
    [[nowhere, '--unpaid', '--by', 'ada'], '--evidence'],
    [[nowhere, '--unpaid', '--evidence', 'seen', '--by', 'a b'], '--by'],
  ])('is refused without its required arguments: %j', async (args, message) => {
    const ended = await resolve({ url: 'postgresql://unknown@127.0.0.1:9/none' }, ...args);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(message);
  });
});
