import { numberToHex } from 'viem';
import { describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { multicall3Address } from '../../../../src/devnet/chain.ts';
import { foldQuote } from '../../../../src/payments/rules/quote-state.ts';
import { discardCall } from '../../../../src/calls/use-cases/discard-call.ts';
import { requeueCall } from '../../../../src/calls/use-cases/requeue-call.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { recordBatch } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { transferCall } from '../../../../src/finance/rules/refund-batch.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { listPayments } from '../../../../src/ledger/store/payments.ts';
import { countDeadLetters } from '../../../../src/ledger/store/alerts.ts';
import { listDeadCalls } from '../../../../src/calls/store/calls.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { transferMany } from '../../../support/onchain.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { askNode } from '../../../support/tokens.ts';
import { chainsAt, giveBack, network, payerAddress, price, refunding, transactionCount } from './support.ts';

const chain = useChain();
const part = 1_000_000n;

describe('a payment that is refunded in part', () => {
  test('has the rest due, and is refunded once that was paid too', async () => {
    const { database, gateway, ledger, paid, record, final, stateOf } = await refunding(chain);
    const digest = await paid();
    const first = await final(await giveBack(chain, { amount: part }));
    expect(await record(digest, first)).toMatchObject({ code: 'other_amount' });
    for (const amount of [
      { decimal: '1', symbol: 'EURC' },
      { decimal: '1.0000001', symbol: 'USDC' },
    ])
      expect(await record(digest, first, { amount })).toMatchObject({ code: 'amount_of_other_token' });
    expect(await record(digest, first, { amount: { decimal: '1.0', symbol: 'USDC' } })).toMatchObject({
      kind: 'recorded',
      amount: part,
      remaining: price - part,
    });
    expect(await record(digest, first, { amount: part })).toMatchObject({ kind: 'repeated' });
    await projectToHead(ledger);
    const [due] = (await listRefundsDue(ledger.pool, 0, 10)).rows;
    expect(due).toMatchObject({
      amount: String(price - part),
      paid_amount: String(price),
      refunded_amount: String(part),
      payer: payerAddress,
    });
    expect(await stateOf(digest)).toBe('dead_lettered');
    expect((await gateway.get(`/x402/receipts/${digest}`)).json.refunds).toMatchObject([
      { amount: String(part), transaction: first },
    ]);
    expect((await listPayments(ledger.pool, {}, 0, 10)).rows).toMatchObject([
      { state: 'dead_lettered', refunded_amount: String(part), refund_due: 'dead_lettered' },
    ]);
    expect(await requeueCall(ledger, Number(due?.call_id))).toEqual({ kind: 'refunded' });
    expect(await countDeadLetters(database.db)).toHaveLength(1);

    const rest = await final(await giveBack(chain, { amount: price - part }));
    expect(await record(digest, rest, { amount: price - part + 1n })).toMatchObject({ code: 'too_much' });
    expect(await record(digest, rest)).toMatchObject({ kind: 'recorded', remaining: 0n });
    expect(await stateOf(digest)).toBe('refunded');
    await projectToHead(ledger);
    expect((await listRefundsDue(ledger.pool, 0, 10)).rows).toEqual([]);
    expect([await countDeadLetters(database.db), await listDeadCalls(database.db, 10)]).toEqual([[], []]);
    const another = await final(await giveBack(chain, { amount: part }));
    expect(await record(digest, another, { amount: part })).toMatchObject({
      code: 'refunded_before',
      detail: `${first} ${rest}`,
    });
    const by = { why: 'refunded', operator: 'ada' };
    expect(await discardCall(ledger, Number(due?.call_id), by)).toEqual({
      kind: 'discarded',
      money: 'refunded',
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('and another of the same payer and amount are each refunded once, whichever of the two transactions is named for which', async () => {
    const { database, ledger, paid, record, final, stateOf } = await refunding(chain);
    const [one, other] = [await paid(), await paid()];
    const sent = [await giveBack(chain, { amount: price }), await giveBack(chain, { amount: price })];
    const [first, second] = [await final(sent[0]!), await final(sent[1]!)];
    expect(await record(one, second)).toMatchObject({ kind: 'recorded', remaining: 0n });
    expect(await record(other, second)).toMatchObject({ code: 'transfer_claimed', detail: one });
    expect(await record(one, first)).toMatchObject({ code: 'refunded_before', detail: second });
    expect(await record(other, first)).toMatchObject({ kind: 'recorded', remaining: 0n });
    expect([await stateOf(one), await stateOf(other)]).toEqual(['refunded', 'refunded']);
    await projectToHead(ledger);
    expect((await listRefundsDue(ledger.pool, 0, 10)).rows).toEqual([]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('in two equal parts of one transaction is refunded as a whole, and no part counts twice', async () => {
    const { database, ledger, paid, record, final } = await refunding(chain);
    const digest = await paid();
    const half = price / 2n;
    await chain.mint(multicall3Address, price);
    const one = { asset: chain.token, to: payerAddress, amount: half };
    const transaction = await final(await transferMany(chain.rpcUrl, [one, one]));
    const first = await record(digest, transaction, { amount: half });
    expect(first).toMatchObject({ kind: 'recorded', remaining: half });
    expect(await record(digest, transaction, { amount: half })).toMatchObject({
      kind: 'recorded',
      remaining: 0n,
    });
    expect(await record(digest, transaction, { amount: half })).toMatchObject({ kind: 'repeated' });
    await projectToHead(ledger);
    expect((await listRefundsDue(ledger.pool, 0, 10)).rows).toEqual([]);
    const refunds = (await allEvents(database.db)).filter(({ type }) => type === 'refunded');
    const places = refunds.map(({ data }) => (data as { log_index: number }).log_index);
    expect(new Set(places).size).toBe(2);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is never refunded beyond what was paid by concurrent commands', async () => {
    const { database, paid, record, final } = await refunding(chain);
    const digest = await paid();
    const half = price / 2n + 1n;
    const transactions = [
      await giveBack(chain, { amount: half }),
      await giveBack(chain, { amount: half }),
      await giveBack(chain, { amount: half }),
    ];
    for (const transaction of transactions) await final(transaction);
    const answers = await Promise.all(
      transactions.map((transaction) => record(digest, transaction, { amount: half })),
    );
    const codes = answers.map((answer) => (answer.kind === 'refused' ? answer.code : answer.kind));
    expect(codes.toSorted()).toEqual(['recorded', 'too_much', 'too_much']);
    expect((await allEvents(database.db)).filter(({ type }) => type === 'refunded')).toHaveLength(1);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});

/** Two equal refunds that two operators have started, and their transactions. */
async function startedTwice() {
  const started = await refunding(chain);
  const { ledger, chains, owed, final } = started;
  const [{ callId: _, ...ada }, { callId: __, ...bob }] = [await owed(), await owed()];
  const sent: Hex[] = [];
  for (const [of, role] of [
    [ada, 'spare'],
    [{ ...bob, operator: 'bob' }, 'secondSpare'],
  ] as const) {
    const sender = devnetAddress(role);
    const senderNonce = await transactionCount(chain.rpcUrl, sender);
    expect(await startRefund(ledger, { ...of, sender, senderNonce }, chains)).toMatchObject({
      kind: 'started',
    });
    sent.push(await giveBack(chain, { key: devnetKeys[role] }));
  }
  return { ...started, ada, bob, sent: [await final(sent[0]!), await final(sent[1]!)] as const };
}

describe('of equal refunds to one payer that two operators have started, each under their own nonce,', () => {
  test('each is recorded only by its own transaction', async () => {
    const { database, record, ada, bob, sent } = await startedTwice();
    expect(await record(ada.quoteDigest, sent[1])).toMatchObject({
      code: 'other_sender',
      detail: expect.stringMatching(`^nonce \\d+ of ${devnetAddress('spare')}$`),
    });
    expect(await record(bob.quoteDigest, sent[1])).toMatchObject({ kind: 'recorded', remaining: 0n });
    expect(await record(ada.quoteDigest, sent[0])).toMatchObject({ kind: 'recorded', remaining: 0n });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('none is recorded by a transaction of its sender under another nonce', async () => {
    const { record, ada, final } = await startedTwice();
    const again = await final(await giveBack(chain, { key: devnetKeys.spare }));
    expect(await record(ada.quoteDigest, again)).toMatchObject({ code: 'other_sender' });
  });

  test('a file of both takes for each its own of the named transactions, in any order', async () => {
    const { ledger, chains, ada, bob, sent } = await startedTwice();
    const refunds = [ada, bob].map(({ quoteDigest, paymentNonce }) => ({
      quote_digest: quoteDigest,
      payment_nonce: paymentNonce,
      asset: chain.token,
      symbol: 'USDC',
      decimals: 6,
      to: payerAddress,
      amount: String(price),
      call: transferCall(chain.token, payerAddress, price),
    }));
    const batch = { version: 1, network, as_of_seq: 0, refunds } as const;
    const order = { batch, transactions: sent.toReversed(), operator: 'ada' };
    for await (const { answer } of recordBatch(ledger, order, chains))
      expect(answer).toMatchObject({ kind: 'recorded' });
    const states = [];
    for (const { quoteDigest } of [ada, bob])
      states.push(foldQuote((await readStream(ledger.pool, quoteDigest)).events).payment?.refunds[0]);
    expect(states).toMatchObject(sent.map((transaction) => ({ transaction })));
  });
});

test('of a payment whose block was replaced nothing is recorded as refunded, before any gateway has seen it', async () => {
  const { database, ledger, record, owed, final } = await refunding(chain);
  const { quoteDigest: digest } = await owed();
  const { payment } = foldQuote((await readStream(ledger.pool, digest)).events);
  const { blockNumber } = payment!.settled!.proof!;
  const proxy = await startRpcProxy(chain.rpcUrl);
  const replaced = await askNode(chain.rpcUrl, 'eth_getBlockByNumber', [numberToHex(blockNumber), false]);
  proxy.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === numberToHex(blockNumber)
      ? { result: { ...(replaced as object), hash: `0x${'ab'.repeat(32)}` } }
      : undefined;
  const transaction = await final(await giveBack(chain, { amount: part }));
  const goodwill = { amount: part, isGoodwill: true };
  expect(await record(digest, transaction, goodwill, chainsAt(proxy.url))).toMatchObject({
    code: 'payment_unproven',
    detail: `block ${blockNumber} was reorged out`,
  });
  expect(await record(digest, transaction, goodwill)).toMatchObject({ kind: 'recorded' });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

describe('a refund to another address than the payer', () => {
  const other = devnetAddress('thirdSpare');
  const elsewhere = { to: other, evidence: 'letter of 2026-11-20, wallet lost' };

  test('is recorded with its evidence, and only if the order names that address', async () => {
    const { database, paid, record, final } = await refunding(chain);
    const digest = await paid();
    const transaction = await final(await giveBack(chain, { to: other }));
    expect(await record(digest, transaction)).toMatchObject({ code: 'other_address' });
    expect(await record(digest, transaction, { elsewhere })).toMatchObject({ kind: 'recorded', to: other });
    expect(await record(digest, transaction, { elsewhere })).toMatchObject({ kind: 'repeated' });
    expect((await allEvents(database.db)).at(-2)?.data).toMatchObject({
      refunded_to: other,
      evidence: elsewhere.evidence,
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is refused if that address is a payee: the money would not have left the operator', async () => {
    const { ledger, paid, record } = await refunding(chain);
    const digest = await paid();
    await projectToHead(ledger);
    const transaction = await giveBack(chain, { to: payTo });
    expect(await record(digest, transaction, { elsewhere: { ...elsewhere, to: payTo } })).toMatchObject({
      code: 'to_payee',
    });
  });
});
