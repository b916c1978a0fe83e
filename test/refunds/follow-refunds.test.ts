import { createHash } from 'node:crypto';
import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import type { LedgerEvent } from '../../src/domain/events/event.ts';
import { foldQuote } from '../../src/domain/payments/quote-state.ts';
import type { Address, Hex } from '../../src/domain/values/primitives.ts';
import { requeueCall } from '../../src/jobs/requeue-call.ts';
import { projectToHead } from '../../src/projections/project.ts';
import { adoptRefunds } from '../../src/refunds/adopt-refunds.ts';
import { followRefunds } from '../../src/refunds/follow-refunds.ts';
import {
  noteSentRefund,
  readRefunding,
  type StartedRefund,
  startRefund,
} from '../../src/refunds/send-refund.ts';
import { readStream } from '../../src/store/streams.ts';
import { listStartedRefunds } from '../../src/store/refunds.ts';
import { useChain } from '../support/devnet.ts';
import { expectSoundLedger } from '../support/invariants.ts';
import { eventually } from '../support/wait.ts';
import { giveBack, network, payerAddress, price, refunding, transactionCount } from './support.ts';

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
  expect((await listStartedRefunds(database.pool)).map(({ stream }) => stream)).toEqual([
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

test('a refund that was started for a nonce is recorded by the transaction that has spent it, which nobody has named', async () => {
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

test('a refund that an earlier version had started goes on in the stream of its payment, and its call is not delivered', async () => {
  const { database, ledger, chains, owed, typesOf } = await refunding(chain);
  const { callId, ...of } = await owed();
  const id = createHash('sha256').update(`${of.quoteDigest}/${of.paymentNonce}`).digest('hex');
  const stream = `refund:0x${id}`;
  const transaction = `0x${'ab'.repeat(32)}` as const;
  const refund = { refund_id: `0x${id}`, operator: 'eve' };
  const money = { asset: chain.token, symbol: 'USDC', decimals: 6, amount: String(price) };
  const named = { quote_digest: of.quoteDigest, payment_nonce: of.paymentNonce, network, ...money };
  const started: LedgerEvent = {
    type: 'operator_refund_started',
    data: { ...refund, ...named, refund_to: payerAddress },
  };
  const sent: LedgerEvent = { type: 'operator_refund_sent', data: { ...refund, network, transaction } };
  expect(await ledger.lane.append({ stream, expect: 0, events: [started, sent] })).toMatchObject({
    outcome: 'ok',
  });
  expect(await adoptRefunds(ledger)).toEqual([]);
  expect(await adoptRefunds(ledger)).toEqual([]);
  expect((await typesOf(stream)).at(-1)).toBe('operator_refund_ended');
  expect((await typesOf(of.quoteDigest)).slice(-2)).toEqual(['refund_started', 'refund_sent']);
  const { state } = await readRefunding(database.pool, of);
  expect(state?.refunding).toMatchObject({ operator: 'eve', amount: price, transaction });
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'under_way' });
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'refund_under_way' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
