import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { foldQuote, receiptState } from '../../../../src/payments/rules/quote-state.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { endRefund, followRefunds } from '../../../../src/finance/use-cases/refunds/end-refund.ts';
import {
  noteSentRefund,
  type RefundOf,
  type StartedRefund,
  startRefund,
} from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { listStartedRefunds } from '../../../../src/payments/store/refunds.ts';
import { readStartedRefunds } from '../../../../src/ledger/store/backlogs.ts';
import {
  type Proof,
  type SettlementOutcome,
  settlementState,
} from '../../../../src/payments/rules/settlement.ts';
import { recordDecision } from '../../../../src/payments/use-cases/record-settlement.ts';
import { useChain } from '../../../support/devnet.ts';
import { tollbook } from '../../../support/program.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { eventually } from '../../../support/wait.ts';
import { chainsAt, giveBack, price, refunding, transactionCount } from './support.ts';

const chain = useChain();

test('a refund that a wallet has sent is recorded once it is final, and one that failed is given up, without any page or command', async () => {
  const { database, ledger, chains, owed, typesOf } = await refunding(chain);
  const [{ callId: _, ...sent }, { callId: __, ...failed }, { callId: ___, ...unknown }] = [
    await owed(),
    await owed(),
    await owed(),
  ];
  const sender = privateKeyToAccount(devnetKeys.spare).address.toLowerCase() as Address;
  for (const of of [sent, { ...failed, sender }, unknown])
    expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' });
  await projectToHead(ledger);
  expect(await listStartedRefunds(database.pool)).toEqual([
    sent.quoteDigest,
    failed.quoteDigest,
    unknown.quoteDigest,
  ]);
  await noteSentRefund(ledger, { ...sent, transaction: await giveBack(chain) }, chains);
  const reverted = await giveBack(chain, { amount: 10n ** 30n, gas: 100_000n, key: devnetKeys.spare });
  await noteSentRefund(ledger, { ...failed, transaction: reverted }, chains);
  const endOf = async (of: { readonly quoteDigest: Hex }) => (await typesOf(of.quoteDigest)).at(-1);
  await eventually(async () => {
    await followRefunds(ledger, chains);
    expect([await endOf(sent), await endOf(failed)]).toEqual(['refunded', 'refund_abandoned']);
  });
  expect(await endOf(unknown)).toBe('refund_started');
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a refund that was started for a nonce is recorded by the transaction that has spent it, which no operator has named', async () => {
  const { database, ledger, chains, owed, typesOf } = await refunding(chain);
  const { callId: _, ...of } = await owed();
  const account = privateKeyToAccount(devnetKeys.spare);
  const sender = account.address.toLowerCase() as Address;
  const wallet = createWalletClient({ account, transport: http(chain.rpcUrl) });
  const senderNonce = await transactionCount(chain.rpcUrl, sender);
  const started = await startRefund(ledger, { ...of, sender, senderNonce }, chains);
  await projectToHead(ledger);
  await followRefunds(ledger, chains);
  expect((await typesOf(of.quoteDigest)).at(-1)).toBe('refund_started');
  await chain.mint(sender, price);
  const { to, data } = (started as StartedRefund).call;
  const transaction = await wallet.sendTransaction({
    to,
    data: data as Hex,
    nonce: senderNonce,
    chain: null,
  });
  await eventually(async () => {
    await followRefunds(ledger, chains);
    expect((await typesOf(of.quoteDigest)).at(-1)).toBe('refunded');
  });
  const { payment } = foldQuote((await readStream(database.pool, of.quoteDigest)).events);
  expect(payment).toMatchObject({ isRefunded: true, refunds: [{ transaction, amount: price }] });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('the nonce of a transaction that the node did not know when it was named is learnt later, so that its end is known', async () => {
  const { database, ledger, chains, owed, typesOf } = await refunding(chain);
  const { callId: _, ...of } = await owed();
  const sender = privateKeyToAccount(devnetKeys.spare).address.toLowerCase() as Address;
  await startRefund(ledger, { ...of, sender }, chains);
  await projectToHead(ledger);
  const failed = await giveBack(chain, { amount: 10n ** 30n, gas: 100_000n, key: devnetKeys.spare });
  const late = await startRpcProxy(chain.rpcUrl);
  late.lie = ({ method }) => (method === 'eth_getTransactionByHash' ? { result: null } : undefined);
  await noteSentRefund(ledger, { ...of, transaction: failed }, chainsAt(late.url));
  await followRefunds(ledger, chainsAt(late.url));
  expect((await typesOf(of.quoteDigest)).at(-1)).toBe('refund_sent');
  await eventually(async () => {
    await followRefunds(ledger, chains);
    expect((await typesOf(of.quoteDigest)).at(-1)).toBe('refund_abandoned');
  });
  expect((await typesOf(of.quoteDigest)).filter((type) => type === 'refund_sent')).toHaveLength(2);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a refund is found by its nonce among all transfers that look like it', async () => {
  const { database, ledger, chains, owed, typesOf, final } = await refunding(chain);
  const { callId: _, ...of } = await owed();
  const sender = privateKeyToAccount(devnetKeys.spare).address.toLowerCase() as Address;
  const senderNonce = await transactionCount(chain.rpcUrl, sender);
  await startRefund(ledger, { ...of, sender, senderNonce }, chains);
  await projectToHead(ledger);
  const like = await giveBack(chain);
  const transaction = await giveBack(chain, { key: devnetKeys.spare });
  await final(like);
  await eventually(async () => {
    await followRefunds(ledger, chains);
    expect((await typesOf(of.quoteDigest)).at(-1)).toBe('refunded');
  });
  const { payment } = foldQuote((await readStream(database.pool, of.quoteDigest)).events);
  expect(payment?.refunds).toMatchObject([{ transaction }]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a started refund whose payment is taken back is followed until it is recorded or given up', async () => {
  const { database, ledger, chains, owed, gateway } = await refunding(chain);
  const [{ callId: _, ...sent }, { callId: __, ...unsent }] = [await owed(), await owed()];
  await gateway.stop();
  const quoteOf = async (of: RefundOf) => foldQuote((await readStream(database.pool, of.quoteDigest)).events);
  const decided = async (of: RefundOf, outcome: SettlementOutcome) => {
    const { payment, version } = await quoteOf(of);
    const started = { digest: of.quoteDigest, version, state: settlementState(payment!, undefined) };
    expect(await recordDecision(ledger, started, outcome)).toMatchObject({ kind: 'recorded' });
  };
  const { transaction, proof } = (await quoteOf(sent)).payment!.settled!;
  for (const of of [sent, unsent]) {
    await startRefund(ledger, of, chains);
    await decided(of, { kind: 'reorged' });
  }
  await noteSentRefund(ledger, { ...sent, transaction: await giveBack(chain) }, chains);
  await projectToHead(ledger);
  expect(await listStartedRefunds(database.pool)).toEqual([sent.quoteDigest, unsent.quoteDigest]);
  expect(await readStartedRefunds(database.pool)).toMatchObject({ count: 2 });
  expect(await tollbook(['refunds', 'due'], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`quote ${unsent.quoteDigest}: its refund is being sent, although`),
  });
  await eventually(async () => {
    await followRefunds(ledger, chains);
    expect((await quoteOf(sent)).payment).toMatchObject({ status: 'settlement_unknown', isRefunded: true });
  });
  for (const operator of ['ada', 'bob'])
    await endRefund(ledger, { ...unsent, operator, why: 'closed' }, chains);
  await projectToHead(ledger);
  expect(await readStartedRefunds(database.pool)).toEqual({ count: 0, oldestMs: 0 });
  // it lands again
  await decided(sent, { kind: 'settled', transaction: transaction as Hex, proof: proof as Proof });
  expect(receiptState(await quoteOf(sent), 0)).toBe('refunded');
  expect(await startRefund(ledger, sent, chains)).toMatchObject({ code: 'not_due' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
