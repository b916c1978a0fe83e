import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { multicall3Address } from '../../../../src/devnet/chain.ts';
import { multicall3 } from '../../../../src/devnet/contracts.ts';
import { transferCall } from '../../../../src/finance/rules/refund-batch.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { recordUnexplainedTransfer } from '../../../../src/finance/use-cases/refunds/record-unexplained-transfer.ts';
import { listCosts } from '../../../../src/payments/store/refunds.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { tollbook } from '../../../support/program.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { hex32Of } from '../../../support/synthetic-ledger.ts';
import { customer } from '../../../support/synthetic-people.ts';
import { askNode } from '../../../support/tokens.ts';
import { chainsAt, giveBack, network, payerAddress, price, refunding } from '../refunds/support.ts';

const chain = useChain();
const rpc = () => ['--rpc', `${network}=${chain.rpcUrl}`] as const;

/** A gateway with a refund that is due, and a node that does not say what some transactions cost. */
async function setUp() {
  const refunds = await refunding(chain);
  const proxy = await startRpcProxy(chain.rpcUrl);
  const unpriced = new Map<string, object>();
  proxy.lie = ({ method, params }) => {
    const result = unpriced.get(String(params[0]));
    return method === 'eth_getTransactionReceipt' && result ? { result } : undefined;
  };
  const env = { DATABASE_URL: refunds.database.url };
  return {
    ...refunds,
    proxy,
    silent: chainsAt(proxy.url),
    /** Waits until a transaction is final, whose receipt then has no price. */
    async sent(transaction: Promise<Hex>): Promise<Hex> {
      const final = await refunds.final(await transaction);
      const receipt = (await askNode(chain.rpcUrl, 'eth_getTransactionReceipt', [final])) as object;
      unpriced.set(final, { ...receipt, effectiveGasPrice: undefined });
      return final;
    },
    missing: (...more: readonly string[]) =>
      tollbook(['costs', 'record', '--missing', '--by', 'ada', ...more], env),
    costs: (...args: readonly string[]) => tollbook(['costs', ...args], env),
    recorded: async () => (await listCosts(refunds.ledger.pool, 10)).map(({ data }) => data),
  };
}

test('`costs record --missing` records the cost of every transaction of the operator that the ledger names, once, and names those that it could not record', async () => {
  const { database, ledger, paid, record, sweep, final, silent, sent, proxy, missing, recorded } =
    await setUp();
  const digest = await paid();
  const refund = await sent(giveBack(chain));
  expect(await record(digest, refund, {}, silent)).toMatchObject({ kind: 'recorded' });
  const swept = await sent(giveBack(chain, { to: devnetAddress('operator'), amount: 5n }));
  expect(await sweep(swept, {}, silent)).toMatchObject({ kind: 'recorded' });
  const accepted = [{ network, asset: chain.token, symbol: 'USDC', decimals: 6, payTo }] as const;
  const use = (transaction: Hex, as: 'own' | 'suspense') => {
    const order = { network, transaction, logIndex: undefined, use: { as }, operator: 'ada' } as const;
    return recordUnexplainedTransfer(ledger, order, silent, accepted);
  };
  const own = await sent(giveBack(chain, { key: devnetKeys.spare, to: payTo, amount: 6n }));
  expect(await use(own, 'own')).toMatchObject({ kind: 'recorded' });
  // a stranger paid for this one
  const unexplained = await final(
    await giveBack(chain, { key: devnetKeys.thirdSpare, to: payTo, amount: 7n }),
  );
  expect(await use(unexplained, 'suspense')).toMatchObject({ kind: 'recorded' });
  expect(await recorded()).toEqual([]);

  const named = [
    ['refund', refund],
    ['sweep', swept],
    ['transfer', own],
  ].map(([purpose, transaction]) => `transaction ${transaction} (${purpose}) on ${network}: `);
  const unanswered = await missing('--rpc', `${network}=${proxy.url}`);
  expect([unanswered.code, unanswered.stdout]).toEqual([2, '']);
  const lines = unanswered.stderr.trim().split('\n');
  expect(lines).toEqual(named.map((subject) => expect.stringContaining(subject) as string));
  expect(await missing('--rpc', `eip155:1=${chain.rpcUrl}`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${named[0]}no RPC`) as string,
  });
  expect(await missing('--network', 'eip155:1', ...rpc())).toMatchObject({
    code: 0,
    stdout: 'No cost is missing.\n',
  });
  expect(await recorded()).toEqual([]);

  const both = await Promise.all([missing(...rpc()), missing(...rpc())]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(both.flatMap(({ stdout }) => stdout.match(/^Recorded: /gm) ?? [])).toHaveLength(3);
  expect(
    (await recorded())
      .map(({ purpose, transaction, payer, operator }) => ({
        purpose,
        transaction,
        payer,
        operator,
      }))
      .toReversed(),
  ).toEqual([
    { purpose: 'refund', transaction: refund, payer: payTo, operator: 'ada' },
    { purpose: 'sweep', transaction: swept, payer: payTo, operator: 'ada' },
    { purpose: 'transfer', transaction: own, payer: devnetAddress('spare'), operator: 'ada' },
  ]);
  expect(await missing(...rpc())).toMatchObject({ code: 0, stdout: 'No cost is missing.\n', stderr: '' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('`costs record --missing` looks at what landed a spend and at what paid it out', async () => {
  const { database, missing } = await setUp();
  const paidOut = { transaction: hex32Of('payout') };
  const events = customer(0).map(({ stream, event }) =>
    event.type === 'spend_paid_out'
      ? { stream, event: { ...event, data: { ...event.data, ...paidOut } } }
      : { stream, event },
  );
  await appendAll(database, events);
  const transactionOf = (type: string) =>
    events
      .filter(({ event }) => event.type === type)
      .map(({ event }) => (event.data as { readonly transaction?: string }).transaction)
      .join(' ');
  const { code, stderr } = await missing(...rpc());
  expect(code).toBe(2);
  for (const [type, purpose] of [
    ['spend_authorized', 'authorization'],
    ['spend_paid_out', 'claim'],
  ] as const)
    expect(stderr).toContain(
      `transaction ${transactionOf(type)} (${purpose}) on ${network}: the chain has no receipt`,
    );
});

test("`costs record --missing` leaves out what an account has sent that is not known as the operator's, until somebody states that it is", async () => {
  const { paid, record, final, missing, recorded } = await setUp();
  const digest = await paid();
  await chain.mint(multicall3Address, price);
  const sender = privateKeyToAccount(devnetKeys.spare);
  const { to, data } = transferCall(chain.token, payerAddress, price);
  const transaction = await final(
    await createWalletClient({ account: sender, transport: http(chain.rpcUrl) }).writeContract({
      address: multicall3Address,
      abi: multicall3.abi,
      functionName: 'aggregate',
      args: [[{ target: to, callData: data as Hex }]],
      chain: null,
    }),
  );
  expect(await record(digest, transaction)).toMatchObject({ kind: 'recorded' });
  const spare = devnetAddress('spare');
  expect(await missing(...rpc())).toMatchObject({
    code: 0,
    stdout: `Left out: transaction ${transaction} (refund) on ${network}: ${spare} sent it, which is not known as yours. If it is, name it with --payer.\n`,
  });
  expect(await recorded()).toEqual([]);
  expect(await missing('--payer', spare, ...rpc())).toMatchObject({ code: 0, stderr: '' });
  expect(await recorded()).toMatchObject([{ purpose: 'refund', transaction, payer: spare }]);
});

test('a wrong record of a cost is reversed once, with its reason, and is recorded again only by its own command', async () => {
  const { database, paid, record, sweep, final, missing, costs, recorded } = await setUp();
  expect(await record(await paid(), await final(await giveBack(chain)))).toMatchObject({ kind: 'recorded' });
  const transaction = await final(await giveBack(chain, { to: devnetAddress('operator'), amount: 5n }));
  const named = ['--network', network, '--tx', transaction];
  const reverse = () => costs('reverse', ...named, '--why', 'the vault paid for it', '--by', 'eve');
  const nothing = { code: 2, stdout: '', stderr: 'no cost of that transaction stands in the ledger\n' };
  expect(await reverse()).toMatchObject(nothing);
  expect(await sweep(transaction)).toMatchObject({ kind: 'recorded' });
  const answers = await Promise.all([reverse(), reverse()]);
  expect(answers.map(({ code }) => String(code)).toSorted()).toEqual(['0', '2']);
  expect(answers.find(({ code }) => code === 0)?.stdout).toMatch(
    /^Reversed: 0\.\d{18} ETH of gas \(sweep\), paid by 0x[0-9a-f]{40}\.\n$/,
  );
  expect(await reverse()).toMatchObject(nothing);
  expect(await missing(...rpc())).toMatchObject({
    code: 0,
    stdout: `Left out: transaction ${transaction} (sweep) on ${network}: eve has reversed the record of its cost: the vault paid for it.\n`,
  });
  const again = await costs('record', ...named, '--purpose', 'transfer', ...rpc(), '--by', 'ada');
  expect(again).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Recorded: .* \(transfer\)/) as string,
  });
  expect(await missing(...rpc())).toMatchObject({ code: 0, stdout: 'No cost is missing.\n' });
  expect((await recorded()).map(({ purpose }) => purpose)).toEqual(['transfer', 'sweep', 'sweep', 'refund']);
  const { stdout } = await costs('list');
  expect(stdout).toMatch(/ {2}reversed: 0\.\d{18} ETH \(sweep\) on eip155:84532, by eve\n/);
  expect(stdout).toContain(`paid by ${payTo}, transaction ${transaction}\n  why: the vault paid for it\n`);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test.each([
  [
    ['record', '--missing', '--tx', '0x1', '--rpc', 'eip155:1=http://localhost'],
    /leave --tx and --purpose out/,
  ],
  [['record', '--missing'], /--rpc|--config/],
  [['record', '--tx', '0x1', '--purpose', 'refund', '--rpc', 'eip155:1=http://localhost'], /--network is/],
  [['reverse', '--network', 'eip155:1', '--tx', `0x${'a'.repeat(64)}`], /--why is the reason/],
])('what the commands of costs need is said before anything is read: %s', async (args, words) => {
  expect(await tollbook(['costs', ...args])).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
});
