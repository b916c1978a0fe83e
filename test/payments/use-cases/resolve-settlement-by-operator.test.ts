import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { configText, receiptKey, runnerSecret } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { landPayment } from '../../support/onchain.ts';
import { quoteAndSign } from '../../support/payer.ts';
import { temporaryFolder, tollbook } from '../../support/program.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { askNode } from '../../support/tokens.ts';
import { behindProxy, digestOf, job, pay, reaches, receiptOf } from './settlement-support.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}`;

function resolve(database: { url: string }, ...args: string[]) {
  return tollbook(['settlements', 'resolve', ...args], { DATABASE_URL: database.url });
}

/** A payment whose settlement stays open. */
async function openPayment(rpcUrl = chain.rpcUrl) {
  const setup = await behindProxy(chain, { rpcUrl });
  const payment = await quoteAndSign(setup.gateway, job, 'x');
  setup.proxy.faults.settle = 'server_error';
  expect((await pay(setup.gateway, payment)).status).toBe(503);
  return { ...setup, payment };
}

describe("an operator's decision", () => {
  const words = ['--evidence', 'seen in the explorer', '--by', 'ada'];

  test("that a settlement is paid is recorded with the operator's name and enqueues its call", async () => {
    const { database, gateway, payment, typesOf } = await openPayment();
    const ended = await resolve(database, digestOf(payment), '--paid', nowhere, '--log-index', '7', ...words);
    expect(ended).toMatchObject({ code: 0 });
    await reaches(gateway, payment, 'completed', database);
    expect(await typesOf(digestOf(payment))).toContain('operator_settlement_resolved');
    const again = await resolve(database, digestOf(payment), '--unpaid', ...words);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('no settlement of that quote is open');
  });

  test('that a settlement is paid names the log of the transfer, as the chain or the operator says', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { database, payment, setup } = await openPayment(rpc.url);
    rpc.lie = () => ({ error: { code: -32_000, message: 'this node shows the gateway nothing' } });
    const digest = digestOf(payment);
    const blind = await resolve(database, digest, '--paid', nowhere, ...words);
    expect(blind).toMatchObject({ code: 2, stderr: expect.stringContaining('--log-index') });
    const transaction = await landPayment(chain.rpcUrl, payment);
    const file = path.join(temporaryFolder(), 'tollbook.toml');
    writeFileSync(file, configText({ ...setup, chain }));
    const asked = (...args: string[]) =>
      tollbook(
        ['settlements', 'resolve', digest, '--paid', transaction, ...args, ...words, '--config', file],
        {
          DATABASE_URL: database.url,
          RUNNER_TOKEN: runnerSecret,
          RECEIPT_KEY: receiptKey,
        },
      );
    expect(await asked('--log-index', '99')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('opposite'),
    });
    expect(await asked()).toMatchObject({ code: 0 });
    const { logs } = (await askNode(chain.rpcUrl, 'eth_getTransactionReceipt', [transaction])) as {
      logs: { logIndex: string }[];
    };
    const settled = (await allEvents(database.db)).find(({ type }) => type === 'payment_settled');
    expect(settled?.data).toMatchObject({ transaction, log_index: Number(logs.at(-1)?.logIndex) });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
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
    [[nowhere, '--paid', '0x12', ...words], '--paid is a transaction'],
    [[nowhere, '--paid', nowhere, '--log-index', '-1', ...words], '--log-index'],
    [[nowhere, '--unpaid', '--log-index', '1', ...words], '--log-index is'],
    [[nowhere, '--unpaid', '--by', 'ada'], '--evidence'],
    [[nowhere, '--unpaid', '--evidence', 'seen', '--by', 'a b'], '--by'],
  ])('is refused without its required arguments: %j', async (args, message) => {
    const ended = await resolve({ url: 'postgresql://unknown@127.0.0.1:9/none' }, ...args);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(message);
  });
});
