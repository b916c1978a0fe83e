import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import type { RefundBatch } from '../../../../src/finance/rules/refund-batch.ts';
import { foldQuote } from '../../../../src/payments/rules/quote-state.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { discardCall } from '../../../../src/calls/use-cases/discard-call.ts';
import { requeueCall } from '../../../../src/calls/use-cases/requeue-call.ts';
import { endRefund } from '../../../../src/finance/use-cases/refunds/end-refund.ts';
import { noteSentRefund, startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { overlayLane } from '../../../../src/ledger/store/lane.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { paidJob, type StreamEvent } from '../../../support/synthetic-ledger.ts';
import { eventually } from '../../../support/wait.ts';
import {
  chainsAt,
  chainsThatStandStill,
  giveBack,
  network,
  openLedger,
  refunding,
  reluctant,
  transactionCount,
} from './support.ts';

const chain = useChain();

async function paymentIn(database: TestDatabase, digest: Hex) {
  const { payment } = foldQuote((await readStream(database.pool, digest)).events);
  const known = payment!;
  return { known, paymentNonce: known.payment.nonce as Hex };
}

/** A dead letter whose payment is in a final block, and how its refund is named. */
async function due(react?: Parameters<typeof refunding>[1]) {
  const world = await refunding(chain, react);
  const { callId, ...of } = await world.owed();
  const digest = of.quoteDigest;
  const env = { DATABASE_URL: world.database.url };
  const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];
  const sound = () => world.database.asOwner((owner) => expectSoundLedger(world.database.db, owner));
  return { ...world, digest, callId, of, env, rpc, sound };
}

test('a dead letter whose refund a batch has started is not queued again, until the batch is given up', async () => {
  const { database, ledger, digest, callId, env, rpc, record, final, sound } = await due({
    react: reluctant,
  });
  const out = path.join(temporaryFolder(), 'batch.json');
  const made = await tollbook(
    ['refunds', 'batch', '--network', network, '--out', out, '--by', 'ada', ...rpc],
    env,
  );
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining(`1 refund in ${out}.`) });
  const requeued = await tollbook(['calls', 'requeue', String(callId)], env);
  expect(requeued).toMatchObject({ code: 2, stderr: expect.stringContaining('is being sent') });
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'refund_under_way' });
  // no other batch has it
  const again = await tollbook(['refunds', 'batch', '--network', network, '--out', `${out}.2`, ...rpc], env);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('has a refund under way') });
  const listed = await tollbook(['refunds', 'due'], env);
  expect(listed.stdout).toMatch(/being sent since \S+ \(\d+ s\) by ada: its call is not delivered meanwhile/);

  const [refund] = (JSON.parse(readFileSync(out, 'utf8')) as RefundBatch).refunds;
  const transaction = await final(await giveBack(chain, { to: refund!.to, amount: BigInt(refund!.amount) }));
  expect(await record(digest, transaction)).toMatchObject({ kind: 'recorded', remaining: 0n });
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'refunded' });
  expect((await paymentIn(database, digest)).known).toMatchObject({ isRefunded: true, refunding: undefined });
  await sound();
});

test('a requeue that waits for its append while a refund is started is decided again, and refused', async () => {
  const { ledger, chains, of, callId, typesOf, digest, sound } = await due({ react: reluctant });
  let open!: () => void;
  const gate = new Promise<void>((resolve) => (open = resolve));
  let waiting = false;
  const append: typeof ledger.lane.append = async (command, options) => {
    waiting = true;
    await gate;
    return ledger.lane.append(command, options);
  };
  const requeue = requeueCall({ ...ledger, lane: overlayLane(ledger.lane, { append }) }, callId, {
    operator: 'bob',
  });
  await eventually(() => Promise.resolve(expect(waiting).toBe(true)));
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' });
  open();
  expect(await requeue).toEqual({ kind: 'refund_under_way' });
  expect((await typesOf(digest)).at(-1)).toBe('refund_started');
  await sound();
});

test('of a requeue and a refund at the same moment one is refused', async () => {
  const { ledger, chains, of, callId, typesOf, digest, stateOf, sound } = await due({ react: reluctant });
  const [requeued, started] = await Promise.all([
    requeueCall(ledger, callId, { operator: 'bob' }),
    startRefund(ledger, of, chains),
  ]);
  expect([requeued.kind, started.kind]).toEqual(
    requeued.kind === 'requeued' ? ['requeued', 'refused'] : ['refund_under_way', 'started'],
  );
  const end = requeued.kind === 'requeued' ? 'completed' : 'dead_lettered';
  await eventually(async () => expect(await stateOf(digest)).toBe(end));
  const types = await typesOf(digest);
  expect(types.includes('operator_requeued')).toBe(!types.includes('refund_started'));
  await sound();
});

test('no refund is started of a call that a runner may still get, and none of one that was delivered', async () => {
  const { ledger, chains, of, callId, stateOf, digest } = await due({ react: reluctant });
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'not_due' });
  await eventually(async () => expect(await stateOf(digest)).toBe('completed'));
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'not_due' });
});

test('a call that was given up is refunded by the same steps', async () => {
  const { ledger, chains, of, callId, digest, record, final, sound } = await due();
  expect(await discardCall(ledger, callId, { why: 'the model is gone', operator: 'ada' })).toMatchObject({
    kind: 'discarded',
  });
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' });
  expect(await record(digest, await final(await giveBack(chain)))).toMatchObject({ kind: 'recorded' });
  await sound();
});

test('no refund is started of a payment that a reorg may still take back', async () => {
  const { database, ledger, paid, chains, final } = await refunding(chain);
  const still = await chainsThatStandStill(chain.rpcUrl);
  const digest = await paid();
  const { known, paymentNonce } = await paymentIn(database, digest);
  const of = { quoteDigest: digest, paymentNonce, operator: 'ada' };
  expect(await startRefund(ledger, of, still)).toMatchObject({
    kind: 'refused',
    code: 'payment_not_final',
    detail: expect.stringContaining(`block ${known.settled?.proof?.blockNumber}`),
  });
  await final(known.settled?.transaction as Hex);
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' });
});

test('a payment that only an operator’s evidence shows is refunded with a reason, and one that only a facilitator reported is not', async () => {
  const ofOperator = unprovenJob(1, 'operator');
  const reported = unprovenJob(2, 'facilitator');
  const database = await createDatabase();
  await appendAll(database, [...ofOperator, ...reported]);
  const ledger = openLedger(database);
  const chains = chainsAt(chain.rpcUrl);
  const start = async (job: readonly StreamEvent[], evidence?: string) => {
    const quoteDigest = job[0]!.stream as Hex;
    const { paymentNonce } = await paymentIn(database, quoteDigest);
    return startRefund(ledger, { quoteDigest, paymentNonce, operator: 'ada', evidence }, chains);
  };
  const unproven = { kind: 'refused', code: 'payment_unproven' };
  expect(await start(ofOperator)).toMatchObject(unproven);
  expect(await start(reported, 'I saw it')).toMatchObject(unproven);
  expect(await start(ofOperator, 'the explorer shows it')).toMatchObject({ kind: 'started' });
  const { events } = await readStream(database.pool, ofOperator[0]!.stream);
  expect(events.at(-1)?.data).toMatchObject({ evidence: 'the explorer shows it', operator: 'ada' });
});

/** A dead letter whose payment no block proves. */
function unprovenJob(n: number, evidence: 'operator' | 'facilitator'): StreamEvent[] {
  return paidJob(n).flatMap(({ stream, event }): StreamEvent[] => {
    if (event.type === 'completed') {
      const { call_id, attempt } = event.data;
      return [{ stream, event: { type: 'dead_lettered', data: { call_id, attempt, reason: 'x' } } }];
    }
    if (event.type !== 'payment_settled') return [{ stream, event }];
    const { network: on, asset, payer, payment_nonce, amount, transaction } = event.data;
    const named = { network: on, asset, payer, payment_nonce };
    const resolved: LedgerEvent = {
      type: 'operator_settlement_resolved',
      data: { ...named, paid: true, evidence: 'x', operator: 'ada' },
    };
    const settled: LedgerEvent = {
      type: 'payment_settled',
      data: { ...named, amount, transaction, evidence },
    };
    return [...(evidence === 'operator' ? [{ stream, event: resolved }] : []), { stream, event: settled }];
  });
}

const spare = privateKeyToAccount(devnetKeys.spare);
const spareAddress = spare.address.toLowerCase() as Address;

test('what the wallet has sent is not given up: it waits, has landed, or failed in a final block', async () => {
  const { ledger, chains, of, digest, record, final, sound } = await due();
  await startRefund(ledger, { ...of, sender: spareAddress }, chains);
  const say = (operator: string) => endRefund(ledger, { ...of, operator, why: 'not seen' }, chains);
  expect(await say('ada')).toEqual({ kind: 'said' });
  const failed = await giveBack(chain, { amount: 10n ** 30n, gas: 100_000n, key: devnetKeys.spare });
  expect(await noteSentRefund(ledger, { ...of, transaction: failed }, chains)).toEqual({ kind: 'recorded' });
  expect(await noteSentRefund(ledger, { ...of, transaction: failed }, chains)).toEqual({ kind: 'recorded' });
  await eventually(async () => expect(await say('bob')).toEqual({ kind: 'abandoned' }));
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' });
  const sent = await giveBack(chain);
  await noteSentRefund(ledger, { ...of, transaction: sent }, chains);
  for (const operator of ['ada', 'bob'])
    expect(await say(operator)).toMatchObject({ kind: 'refused', code: 'landed' });
  expect(await record(digest, await final(sent))).toMatchObject({ kind: 'recorded' });
  await sound();
});

test('a refund from a Safe is not given up because the account that has sent its transaction has spent a nonce: anyone can send it again', async () => {
  const { ledger, chains, of, sound } = await due();
  const safe: Address = `0x${'5a'.repeat(20)}`;
  await startRefund(ledger, { ...of, sender: safe }, chains);
  const failed = await giveBack(chain, { amount: 10n ** 30n, gas: 100_000n, key: devnetKeys.spare });
  expect(await noteSentRefund(ledger, { ...of, transaction: failed }, chains)).toEqual({ kind: 'recorded' });
  // its executor's nonce is spent, and final
  await eventually(async () =>
    expect(await endRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'unproven' }),
  );
  await sound();
});

/** A batch of one refund that an account of its own sends, under its next nonce. */
async function withNonce() {
  const world = await due({ react: reluctant });
  const account = spare;
  const wallet = createWalletClient({ account, transport: http(chain.rpcUrl) });
  const nonce = await transactionCount(chain.rpcUrl, account.address);
  const out = path.join(temporaryFolder(), 'batch.json');
  const sentBy = ['--from', account.address, '--nonce', String(nonce), '--by', 'ada'];
  const again = () =>
    tollbook(['refunds', 'batch', '--network', network, '--out', out, ...sentBy, ...world.rpc], world.env);
  expect((await again()).code).toBe(0);
  const batch = JSON.parse(readFileSync(out, 'utf8')) as RefundBatch;
  const sender = account.address.toLowerCase();
  expect(batch).toMatchObject({ sender, refunds: [{ sender_nonce: nonce }] });
  const abandon = (by: string, ...more: string[]) =>
    tollbook(['refunds', 'abandon', '--batch', out, '--by', by, ...more, ...world.rpc], world.env);
  return { ...world, account, wallet, nonce, out, batch, abandon, again };
}

test('a batch is given up once a final block shows its nonce spent otherwise, and not before', async () => {
  const { account, wallet, nonce, abandon, again, ledger, callId, typesOf, digest, stateOf, sound } =
    await withNonce();
  for (const by of ['ada', 'bob'])
    expect(await abandon(by, '--why', 'not sent')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`nonce ${nonce} of ${account.address.toLowerCase()} is not spent`),
    });
  await wallet.sendTransaction({ to: account.address, value: 0n, nonce, chain: null });
  await eventually(async () => expect(await abandon('ada')).toMatchObject({ code: 0 }));
  expect((await typesOf(digest)).slice(-2)).toEqual(['refund_started', 'refund_abandoned']);
  expect(await again()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      `--nonce ${nonce} of ${account.address.toLowerCase()} is spent already: its next one is ${nonce + 1}`,
    ),
  });
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
  await eventually(async () => expect(await stateOf(digest)).toBe('completed'));
  await sound();
});

test('a batch that was sent is not given up, although its nonce is spent', async () => {
  const { account, wallet, nonce, batch, abandon, final, env, rpc, out, sound } = await withNonce();
  const [refund] = batch.refunds;
  await chain.mint(account.address.toLowerCase() as Address, BigInt(refund!.amount));
  const { to, data } = refund!.call;
  const transaction = await final(
    await wallet.sendTransaction({ to, data: data as Hex, nonce, chain: null }),
  );
  expect(await abandon('ada')).toMatchObject({ code: 2, stderr: expect.stringContaining(transaction) });
  const recorded = await tollbook(['refunds', 'record', '--batch', out, '--tx', transaction, ...rpc], env);
  expect(recorded).toMatchObject({ code: 0, stdout: expect.stringContaining('Refunded: ') });
  expect(await abandon('ada')).toMatchObject({ code: 2, stderr: expect.stringContaining('under way') });
  await sound();
});
