import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { multicall3Address } from '../../../../src/devnet/chain.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { requeueCall } from '../../../../src/calls/use-cases/requeue-call.ts';
import { listPayments } from '../../../../src/ledger/store/payments.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { useChain } from '../../../support/devnet.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { configText, payTo, receiptKey } from '../../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { transferMany } from '../../../support/onchain.ts';
import { quoteAndSign } from '../../../support/payer.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { paidJob } from '../../../support/synthetic-ledger.ts';
import { sendTokens } from '../../../support/tokens.ts';
import {
  chainsAt,
  chainsThatStandStill,
  giveBack,
  network,
  payerAddress,
  price,
  refunding,
} from './support.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}` as const;
const treasury = devnetKeys.secondSpare;
const done = { status: 200, body: 'done' };

describe('a payment whose call is a dead letter', () => {
  test('is due until its refund is recorded, once, and stays refunded', async () => {
    const { database, ledger, paid, record, final, stateOf, typesOf } = await refunding(chain);
    const digest = await paid();
    await projectToHead(ledger);
    const { rows } = await listRefundsDue(ledger.pool, 0, 10);
    expect(rows).toMatchObject([
      {
        quote_digest: digest,
        payer: payerAddress,
        amount: String(price),
        symbol: 'USDC',
        why: 'dead_lettered',
      },
    ]);
    expect(rows[0]?.age_secs).toBeLessThan(60);
    const [{ call_id: callId } = { call_id: null }] = rows;

    const transaction = await final(await giveBack(chain));
    expect(await record(digest, transaction)).toMatchObject({ kind: 'recorded' });
    expect(await record(digest, transaction)).toMatchObject({ kind: 'repeated' });
    const another = await giveBack(chain);
    expect(await record(digest, another)).toMatchObject({ code: 'refunded_before', detail: transaction });

    expect(await stateOf(digest)).toBe('refunded');
    expect((await typesOf(digest)).slice(-2)).toEqual(['dead_lettered', 'refunded']);
    expect((await allEvents(database.db)).find(({ type }) => type === 'refunded')?.data).toMatchObject({
      amount: String(price),
      refunded_from: payTo,
      refunded_to: payerAddress,
      transaction,
      operator: 'ada',
    });
    await projectToHead(ledger);
    expect((await listRefundsDue(ledger.pool, 0, 10)).rows).toEqual([]);
    expect((await listPayments(ledger.pool, {}, 0, 10)).rows).toMatchObject([
      { state: 'refunded', refund_transaction: transaction, refund_due: null },
    ]);
    expect(await requeueCall(ledger, Number(callId))).toEqual({ kind: 'refunded' });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is due to the payer that its events name, also if a row of the read models differs, and the command ends with 1', async () => {
    const { database, ledger, paid } = await refunding(chain);
    const digest = await paid();
    await projectToHead(ledger);
    const thief = '66'.repeat(20);
    await database.asOwner((owner) =>
      owner.query(String.raw`update tollbook.payment set payer = '\x${thief}', amount = amount * 2`),
    );
    const { rows, contradicted } = await listRefundsDue(ledger.pool, 0, 10);
    expect(rows).toMatchObject([{ quote_digest: digest, payer: payerAddress, amount: String(price) }]);
    expect(contradicted).toEqual([rows[0]?.seq]);
    const listed = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
    expect([listed.code, listed.stdout.includes(thief)]).toEqual([1, false]);
    expect(listed.stdout).toContain(payerAddress);
    expect(listed.stderr).toMatch(/somebody has changed them.*Pay nothing before `tollbook verify` is sound/);
  });

  test('that another payment’s row is made of is not due twice, nor a delivered one at all', async () => {
    const { database, ledger, paid } = await refunding(chain);
    const digest = await paid();
    await appendAll(database, paidJob(1));
    await projectToHead(ledger);
    await database.asOwner((owner) =>
      owner.query(`update tollbook.payment set refund_due = 'dead_lettered', refund_due_since = at`),
    );
    const { rows, contradicted } = await listRefundsDue(ledger.pool, 0, 10);
    expect(rows.map(({ quote_digest }) => quote_digest)).toEqual([digest]);
    expect(contradicted).toHaveLength(2);
  });

  test('may be refunded from the treasury, and the sender is recorded, who paid for the gas', async () => {
    const { database, paid, record, final } = await refunding(chain);
    const digest = await paid();
    const transaction = await final(await giveBack(chain, { key: treasury }));
    expect(await record(digest, transaction)).toMatchObject({ kind: 'recorded' });
    const [refunded, cost] = (await allEvents(database.db)).slice(-2);
    expect(refunded?.data).toMatchObject({ refunded_from: devnetAddress('secondSpare') });
    expect(cost?.data).toMatchObject({ purpose: 'refund', payer: devnetAddress('secondSpare'), transaction });
  });

  test('and a second one can be refunded by one transaction, and a third cannot', async () => {
    const { database, paid, record, final } = await refunding(chain);
    const digests = [await paid(), await paid(), await paid()] as const;
    await chain.mint(multicall3Address, 2n * price);
    const money = { asset: chain.token, to: payerAddress, amount: price };
    const transaction = await final(await transferMany(chain.rpcUrl, [money, money]));
    expect(await record(digests[0], transaction)).toMatchObject({ kind: 'recorded' });
    expect(await record(digests[1], transaction)).toMatchObject({ kind: 'recorded' });
    expect(await record(digests[2], transaction)).toEqual({
      kind: 'refused',
      code: 'transfer_claimed',
      detail: `${digests[0]} ${digests[1]}`,
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});

describe('a refund is refused', () => {
  test('with a transfer to another address, of another amount or token, or that moved nothing', async () => {
    const { paid, record, typesOf } = await refunding(chain);
    const digest = await paid();
    const before = await typesOf(digest);
    const stranger = devnetAddress('thirdSpare');
    const tried = async (change: Parameters<typeof giveBack>[1]) =>
      record(digest, await giveBack(chain, change));
    expect(await tried({ to: stranger })).toMatchObject({
      code: 'other_address',
      detail: `${stranger} instead of ${payerAddress}`,
    });
    expect(await tried({ amount: price - 1n })).toMatchObject({
      code: 'other_amount',
      detail: `${price - 1n} atoms instead of ${price}`,
    });
    expect(await tried({ asset: chain.secondToken, key: devnetKeys.permittedCaller })).toMatchObject({
      code: 'other_token',
      detail: `${chain.secondToken} instead of ${chain.token}`,
    });
    expect(await tried({ key: devnetKeys.payer })).toMatchObject({ code: 'moved_nothing' });
    expect(
      await tried({ asset: chain.secondToken, key: devnetKeys.permittedCaller, to: stranger }),
    ).toMatchObject({
      code: 'no_transfer',
    });
    expect(await typesOf(digest)).toEqual(before);
  });

  test('with a transaction that failed, or that is unknown', async () => {
    const { paid, record } = await refunding(chain);
    const digest = await paid();
    const reverted = await giveBack(chain, { key: devnetKeys.thirdSpare, amount: 10n ** 18n, gas: 200_000n });
    expect(await record(digest, reverted)).toMatchObject({ code: 'transaction_failed' });
    expect(await record(digest, nowhere)).toMatchObject({ code: 'transaction_unknown' });
  });

  test('while its block is not final, and accepted afterwards', async () => {
    const { paid, record, final } = await refunding(chain);
    const digest = await paid();
    const chains = await chainsThatStandStill(chain.rpcUrl);
    const transaction = await final(await giveBack(chain));
    expect(await record(digest, transaction, {}, chains)).toMatchObject({
      code: 'not_final',
      detail: expect.stringMatching(/it is in block \d+, and the last final block is \d+/),
    });
    expect(await record(digest, transaction)).toMatchObject({ kind: 'recorded' });
  });

  test('if its block was reorged out', async () => {
    const { paid, record, final } = await refunding(chain);
    const digest = await paid();
    const transaction = await final(await giveBack(chain));
    const proxy = await startRpcProxy(chain.rpcUrl);
    proxy.lie = ({ method, params }) =>
      method === 'eth_getBlockByNumber' && params[0] !== 'finalized'
        ? { result: { number: params[0], hash: nowhere, timestamp: '0x1' } }
        : undefined;
    expect(await record(digest, transaction, {}, chainsAt(proxy.url))).toMatchObject({
      code: 'not_final',
      detail: expect.stringContaining('was reorged out'),
    });
  });

  test('if the RPC serves another chain, is unreachable or is not configured', async () => {
    const { paid, record } = await refunding(chain);
    const digest = await paid();
    expect(await record(digest, nowhere, {}, chainsAt(chain.rpcUrl, 8_453))).toMatchObject({
      code: 'wrong_chain',
    });
    expect(await record(digest, nowhere, {}, chainsAt('http://127.0.0.1:1'))).toMatchObject({
      code: 'chain_unavailable',
    });
    expect(await record(digest, nowhere, {}, new Map())).toMatchObject({
      code: 'network_unknown',
      detail: network,
    });
  });

  test('of a quote that is unknown or unpaid, or of a payment of another quote', async () => {
    const { gateway, paid, record } = await refunding(chain);
    const unpaid = await quoteAndSign(gateway, '/x402/jobs/1/0', 'x');
    const digest = unpaid.accepted.extra['quoteDigest'] as Hex;
    expect(await record(nowhere, nowhere)).toMatchObject({ code: 'quote_unknown' });
    expect(await record(digest, nowhere)).toMatchObject({ code: 'not_paid' });
    expect(await record(await paid(), nowhere, { paymentNonce: nowhere })).toMatchObject({
      code: 'payment_unknown',
    });
  });

  test('of a call that was or may still be delivered, unless it is goodwill', async () => {
    const { database, paid, record, final, stateOf, typesOf } = await refunding(chain, { react: () => done });
    const digest = await paid('completed');
    const transaction = await giveBack(chain);
    expect(await record(digest, transaction)).toMatchObject({ code: 'delivered' });
    expect(await typesOf(digest)).not.toContain('refunded');
    await final(transaction);
    expect(await record(digest, transaction, { isGoodwill: true })).toMatchObject({
      kind: 'recorded',
    });
    expect(await stateOf(digest)).toBe('refunded');
    const waiting = await refunding(chain, { react: () => ({ status: 503 }) });
    expect(await waiting.record(await waiting.paid('enqueued'), transaction)).toMatchObject({
      code: 'call_open',
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('of a payment that only a lying facilitator reported', async () => {
    const facilitator = await startFacilitatorProxy(chain.facilitatorUrl);
    facilitator.faults.settle = {
      answer: { success: true, transaction: nowhere, network, payer: payerAddress },
    };
    const options = { facilitatorUrl: facilitator.url, top: 'confirm = "never"' };
    const { paid, record, final } = await refunding(chain, options);
    const transaction = await final(await giveBack(chain));
    expect(await record(await paid(), transaction)).toMatchObject({
      code: 'payment_unproven',
      detail: nowhere,
    });
  });

  test('with a transfer that is older than the payment', async () => {
    const { paid, record, final } = await refunding(chain);
    await paid();
    const transaction = await final(await giveBack(chain));
    const later = await paid();
    expect(await record(later, transaction)).toMatchObject({ code: 'before_payment' });
  });
});

test('the commands list refunds due, record refunds and sweeps once, list them, and explain mistakes', async () => {
  const { database, paid, final } = await refunding(chain);
  const digest = await paid();
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, configText({ database, chain }));
  const env = { DATABASE_URL: database.url, RECEIPT_KEY: receiptKey };
  const run = (...args: string[]) => tollbook([...args, '--config', file], env);
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      new RegExp(
        `^quote ${digest}  due since .*its call was not delivered\n  3\\.264000 USDC \\(${price} atoms\\) on `,
      ),
    ),
  });
  const transaction = await final(await giveBack(chain));
  const order = ['refunds', 'record', '--quote-digest', digest, '--tx', transaction, '--by', 'ada'];
  expect(await run(...order)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`Refunded: 3.264000 USDC (${price} atoms) to ${payerAddress}.\nGas: 0.`),
  });
  expect((await run(...order)).stdout).toMatch(
    /^Recorded before: .*\nGas, recorded before: 0\.\d{18} ETH, paid by /,
  );
  expect(await run('sweeps', 'record', '--network', network, '--tx', transaction)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('already recorded for another purpose'),
  });
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({ code: 0, stdout: 'No refund is due.\n' });
  expect(await tollbook(['sweeps', 'list'], env)).toMatchObject({ stdout: 'No sweep is recorded.\n' });
  expect(await run('refunds', 'record', '--quote-digest', '0x1', '--tx', transaction)).toMatchObject({
    code: 2,
  });
  expect(await tollbook(order, env)).toMatchObject({ code: 2, stderr: expect.stringContaining('--config') });
  // an RPC is enough: finance holds no secret of the gateway's
  const alone = ['--rpc', `${network}=${chain.rpcUrl}`];
  const again = await tollbook([...order, ...alone], env);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('Recorded before') });
  const [sweep = ''] = await sendTokens(chain.rpcUrl, devnetKeys.payTo, chain.token, [
    { to: devnetAddress('thirdSpare'), atoms: 1n },
  ]);
  await final(sweep as Hex);
  const swept = ['sweeps', 'record', '--network', network, '--tx', sweep];
  expect(await tollbook([...swept, ...alone], env)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Swept: 0\.000001 USDC \(1 atoms\) from /),
  });
  expect(await tollbook([...swept, '--rpc', `eip155:1=${chain.rpcUrl}`], env)).toMatchObject({
    code: 2,
    stderr: `no RPC of that network is configured: name one with --rpc or --config (${network})\n`,
  });
  expect(await run('sweeps', 'record', '--network', 'base', '--tx', transaction)).toMatchObject({ code: 2 });
});
