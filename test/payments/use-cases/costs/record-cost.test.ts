import { describe, expect, test } from 'vitest';
import { type CostOrder, recordCost } from '../../../../src/payments/use-cases/costs/record-cost.ts';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { listCosts } from '../../../../src/payments/store/refunds.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { tollbook } from '../../../support/program.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { eventually } from '../../../support/wait.ts';
import {
  chainsAt,
  chainsThatStandStill,
  giveBack,
  network,
  openLedger,
} from '../../../finance/use-cases/refunds/support.ts';

const chain = useChain();
const stranger = devnetAddress('thirdSpare');

interface Receipt {
  readonly gasUsed: Hex;
  readonly effectiveGasPrice: Hex;
  readonly blockNumber: Hex;
  readonly blockHash: Hex;
  readonly [key: string]: unknown;
}

/** A ledger without a gateway, and what is recorded in it of transactions. */
async function setUp() {
  const database = await createDatabase();
  const ledger = openLedger(database);
  const chains = chainsAt(chain.rpcUrl);
  return {
    database,
    record: (transaction: Hex, change: Partial<CostOrder> = {}, at = chains) =>
      recordCost(
        ledger,
        { network, transaction, purpose: 'refund', own: new Set([payTo]), operator: 'ada', ...change },
        at.get(network),
      ),
    recorded: async () => (await listCosts(ledger.pool, 10)).map(({ data }) => data),
  };
}

async function receiptOf(transaction: Hex): Promise<Receipt> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'eth_getTransactionReceipt',
    params: [transaction],
  });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(chain.rpcUrl, { method: 'POST', headers, body });
  return ((await response.json()) as { result: Receipt }).result;
}

/** Waits until a transaction is final. */
async function final(transaction: Hex): Promise<Hex> {
  const at = chainsAt(chain.rpcUrl).get(network);
  await eventually(async () => expect(await at?.readCost(transaction)).toMatchObject({ kind: 'final' }));
  return transaction;
}

describe('what a transaction of the operator cost', () => {
  test('is recorded from its receipt, once, for every recorder and purpose', async () => {
    const { database, record, recorded } = await setUp();
    const transaction = await final(await giveBack(chain, { amount: 5n }));
    const receipt = await receiptOf(transaction);
    const answers = await Promise.all([
      record(transaction),
      record(transaction, { purpose: 'sweep', operator: undefined }),
      record(transaction, { operator: 'eve' }),
    ]);
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual(['recorded', 'repeated', 'repeated']);
    expect(await record(transaction)).toMatchObject({ kind: 'repeated' });
    const [cost, ...others] = await recorded();
    expect(others).toEqual([]);
    expect(cost).toMatchObject({
      network,
      transaction,
      payer: payTo,
      symbol: 'ETH',
      gas_used: String(BigInt(receipt.gasUsed)),
      gas_price_wei: String(BigInt(receipt.effectiveGasPrice)),
      block_number: String(BigInt(receipt.blockNumber)),
      block_hash: receipt.blockHash,
    });
    expect(cost).not.toHaveProperty('l1_fee_wei');
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test("is nothing if an account sent it that is not the operator's, until somebody says that it is", async () => {
    const { record, recorded } = await setUp();
    const transaction = await final(await giveBack(chain, { key: devnetKeys.thirdSpare, amount: 5n }));
    expect(await record(transaction)).toEqual({ kind: 'refused', code: 'foreign_payer', detail: stranger });
    expect(await recorded()).toEqual([]);
    expect(await record(transaction, { own: new Set([stranger]) })).toMatchObject({ kind: 'recorded' });
    expect(await recorded()).toMatchObject([{ payer: stranger }]);
  });

  test('is also recorded for a failed transaction, but not for one that is not final or not known', async () => {
    const { record, recorded } = await setUp();
    const standing = await chainsThatStandStill(chain.rpcUrl);
    const failed = await giveBack(chain, { amount: 10n ** 18n, gas: 200_000n });
    expect(await record(failed, {}, standing)).toMatchObject({ code: 'not_final' });
    expect(await record(`0x${'a'.repeat(64)}`)).toMatchObject({ code: 'no_receipt' });
    expect(await record(failed, {}, new Map())).toMatchObject({ code: 'network_unknown' });
    expect(await record(failed, {}, chainsAt(chain.rpcUrl, 1))).toMatchObject({ code: 'wrong_chain' });
    expect(await recorded()).toEqual([]);
    expect(await record(await final(failed))).toMatchObject({ kind: 'recorded' });
  });

  test('has a rollup’s fee in addition to the gas, where the receipt says it', async () => {
    const { record, recorded } = await setUp();
    const transaction = await final(await giveBack(chain, { amount: 5n }));
    const result = { ...(await receiptOf(transaction)), l1Fee: '0x1f4' };
    const proxy = await startRpcProxy(chain.rpcUrl);
    proxy.lie = ({ method }) => (method === 'eth_getTransactionReceipt' ? { result } : undefined);
    expect(await record(transaction, {}, chainsAt(proxy.url))).toMatchObject({ kind: 'recorded' });
    expect(await recorded()).toMatchObject([{ l1_fee_wei: '500' }]);
  });

  test('is not taken from the receipt of another transaction, or from one without a price', async () => {
    const { record, recorded } = await setUp();
    const [one, other] = [await giveBack(chain, { amount: 5n }), await giveBack(chain, { amount: 6n })];
    const result = await receiptOf(await final(other));
    const proxy = await startRpcProxy(chain.rpcUrl);
    proxy.lie = ({ method }) => (method === 'eth_getTransactionReceipt' ? { result } : undefined);
    expect(await record(one, {}, chainsAt(proxy.url))).toMatchObject({ code: 'chain_unavailable' });
    const unpriced = { ...(await receiptOf(one)), effectiveGasPrice: undefined };
    proxy.lie = ({ method }) => (method === 'eth_getTransactionReceipt' ? { result: unpriced } : undefined);
    expect(await record(one, {}, chainsAt(proxy.url))).toMatchObject({ code: 'chain_unavailable' });
    expect(await recorded()).toEqual([]);
  });
});

test('`costs record` says what it recorded, and refuses what a stranger has sent', async () => {
  const { database } = await setUp();
  const env = { DATABASE_URL: database.url };
  const transaction = await final(await giveBack(chain, { key: devnetKeys.thirdSpare, amount: 5n }));
  const record = (...more: string[]) => {
    const of = ['--network', network, '--tx', transaction, '--rpc', `${network}=${chain.rpcUrl}`];
    return tollbook(['costs', 'record', ...of, '--by', 'ada', ...more], env);
  };
  expect(await record('--purpose', 'gift')).toMatchObject({
    code: 2,
    stderr: '--purpose is what it was sent for: refund, sweep, transfer, authorization, claim, anchor\n',
  });
  expect(await record('--purpose', 'refund')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(
      `it cost you nothing; nothing was recorded: if it is yours, name it with --payer (${stranger})`,
    ),
  });
  expect(await tollbook(['costs', 'list'], env)).toMatchObject({
    stdout: 'No cost of a transaction is recorded.\n',
  });
  const words = /^Recorded: 0\.\d{18} ETH of gas \(refund\), paid by 0x[0-9a-f]{40}\.\n$/;
  expect(await record('--purpose', 'refund', '--payer', stranger)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(words),
  });
  expect(await record('--purpose', 'sweep')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Recorded before: 0\.\d{18} ETH of gas \(refund\)/),
  });
  const listed = await tollbook(['costs', 'list'], env);
  expect(listed.stdout).toContain(
    `ETH (refund) on ${network}, by ada\n  paid by ${stranger}, transaction ${transaction}`,
  );
  expect(await tollbook(['verify'], env)).toMatchObject({ code: 0 });
});
