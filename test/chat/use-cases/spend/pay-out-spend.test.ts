import { createTestClient, http, publicActions } from 'viem';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { prepaidContractArtifact } from '../../../../src/devnet/contracts.ts';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import { callAs } from '../../../../src/devnet/deploy.ts';
import { costWei } from '../../../../src/base/values/transaction-cost.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { type SpendAuth, spendAuthHash } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import type { CreditsAnswer } from '../../../../src/chat/peers/prepaid/prepaid-contract.ts';
import type { SpendContext } from '../../../../src/chat/use-cases/context.ts';
import { listCosts } from '../../../../src/payments/store/refunds.ts';
import { collectPayouts, takeNewPayouts, takeSentPayouts } from '../../../../src/chat/store/payouts.ts';
import { readEvents, readStream } from '../../../../src/ledger/store/streams.ts';
import { startSpendPayouts } from '../../../../src/chat/workers/spend-payouts.ts';
import { startRpcStub } from '../../../base/peers/rpc/rpc-stub.ts';
import {
  type Payouts,
  earned,
  finish,
  lastOf,
  paid,
  setUpPayouts,
  troubles,
  runOnce,
} from '../../../support/payouts.ts';
import { tollbook } from '../../../support/program.ts';
import { operator } from '../../../support/spend.ts';
import { spendEventsOf, useSpendChain } from '../../../support/spend-gateway.ts';
import { eventually } from '../../../support/wait.ts';

type Landed = Extract<CreditsAnswer, { kind: 'landed' }>;

const spends = useSpendChain();
const setUp = (change: Partial<SpendContext['settings']> = {}) => setUpPayouts(spends, change);
/** An earned spend that has landed, signed as `spend` says. */
async function landedSpend(
  change: Partial<SpendContext['settings']> = {},
  spend: Partial<SpendAuth> = {},
): Promise<{ payouts: Payouts; auth: SpendAuth }> {
  const payouts = await setUp(change);
  const auth = await (await spends.account()).sign(spend);
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await earned(payouts, auth);
  return { payouts, auth };
}
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });

/** Replaces all blocks from this one on by empty ones; a block that comes meanwhile makes that too few. */
async function reorgFrom(block: Landed['block']): Promise<void> {
  const client = node().extend(publicActions);
  while ((await client.getBlock({ blockNumber: block.number })).hash === block.hash) {
    const depth = (await chainNow()).number - block.number + 1n;
    await node().request({ method: 'anvil_reorg', params: [Number(depth), []] } as never);
  }
}
const chainNow = () => node().extend(publicActions).getBlock();

/** A payout is sent and not waited for: the node may still be making its block. */
const expectBalance = (address: Address, atoms: bigint) =>
  eventually(async () => expect(await spends.chain.balance(address)).toBe(atoms));

test('an earned spend is paid out once by concurrent workers, and is not due again', async () => {
  const { payouts, auth } = await landedSpend();
  const before = await spends.chain.balance(operator);
  const rounds = await Promise.all([runOnce(payouts), runOnce(payouts), runOnce(payouts)]);
  expect(rounds.reduce((sum, count) => sum + count)).toBe(1);
  await expectBalance(operator, before + auth.amount);
  expect(await finish(payouts, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  await payouts.database.moveClock(600);
  expect(await runOnce(payouts)).toBe(0);
  expect(await troubles(payouts.database)).toEqual([]);
});

test.each([
  ['the gateway', true],
  ['a stranger', false],
])('a spend that %s has landed ends with what the operator paid for, once', async (_, isOurs) => {
  const payouts = await setUp();
  const { prepaid } = payouts.spending;
  const auth = await (await spends.account()).sign();
  const landed = isOurs
    ? await prepaid.authorizeSpend(auth, 10_000)
    : await spends.withCredits((other) => other.authorizeSpend(auth, 10_000));
  if (landed.kind !== 'landed') throw new Error(`the spend did not land: ${landed.kind}`);
  await earned(payouts, auth, landed);
  expect(await finish(payouts, auth)).toEqual(paid);
  const costs = (await listCosts(payouts.database.pool, 10)).map(({ data }) => data);
  expect(costs).toMatchObject([
    { purpose: 'claim', payer: operator, symbol: 'ETH' },
    ...(isOurs ? [{ purpose: 'authorization', payer: operator, transaction: landed.transaction }] : []),
  ]);
  for (const cost of costs) expect(costWei(cost)).toBeGreaterThan(0n);
  expect(await runOnce(payouts)).toBe(0);
});

test('a spend is paid out although its receipts cannot be read, and the operator gets a message about the gas', async () => {
  const payouts = await setUp();
  const auth = await (await spends.account()).sign();
  const landed = await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  if (landed.kind !== 'landed') throw new Error(`the spend did not land: ${landed.kind}`);
  await earned(payouts, auth, landed);
  const lines: string[] = [];
  const { prepaid } = payouts.spending;
  const spending: SpendContext = {
    ...payouts.spending,
    log: pino({ level: 'warn' }, { write: (line) => void lines.push(line) }),
    prepaid: { ...prepaid, readCost: () => Promise.resolve({ kind: 'unavailable', cause: 'timeout' }) },
  };
  expect(await finish({ ...payouts, spending }, auth)).toEqual(paid);
  expect(await listCosts(payouts.database.pool, 10)).toEqual([]);
  expect(lines.filter((line) => line.includes('the gas of a spend was not recorded'))).toHaveLength(2);
  expect(await troubles(payouts.database)).toEqual([]);
});

test('a spend that was paid out before is recorded as paid out', async () => {
  const payouts = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await payouts.spending.prepaid.claimPayment(spendAuthHash(auth), operator, 10_000);
  await earned(payouts, auth);
  expect(await finish(payouts, auth)).toEqual(paid);
});

test('a payout goes to the configured recipient', async () => {
  const recipient = `0x${'ab'.repeat(20)}` as const;
  const { payouts, auth } = await landedSpend({ recipient });
  await runOnce(payouts);
  await eventually(async () => expect(await spends.chain.balance(recipient)).toBe(auth.amount));
});

test('no spend is given up while the chain cannot be reached, even after its expiry, and it is paid out later', async () => {
  const stub = await startRpcStub(({ response }) => response.destroy());
  const unreachable = await setUp({ rpcUrl: stub.url });
  const auth = await (await spends.account()).sign();
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await earned(unreachable, auth);
  expect(await runOnce(unreachable)).toBe(1);
  await unreachable.database.moveClock(7_200);
  expect(await runOnce(unreachable)).toBe(1);
  expect(await troubles(unreachable.database)).toEqual([['open', 2, 'chain_unavailable']]);
  const listed = await tollbook(['spend', 'list'], { DATABASE_URL: unreachable.database.url });
  expect(listed.stdout).toContain(`retried  chain_unavailable`);
  expect(listed.stdout).toContain(spendAuthHash(auth));
  const back = await setUp();
  await unreachable.database.moveClock(8_000);
  expect(
    await finish(
      {
        ...unreachable,
        spending: {
          ...unreachable.spending,
          settings: back.spending.settings,
          prepaid: back.spending.prepaid,
        },
      },
      auth,
    ),
  ).toEqual(paid);
  expect(await troubles(unreachable.database)).toEqual([]);
});

test('a payout without ether is retried until the spend has expired', async () => {
  const { payouts, auth } = await landedSpend();
  const value = await node().request({ method: 'eth_getBalance', params: [operator, 'latest'] } as never);
  await node().setBalance({ address: operator, value: 0n });
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'not_sent']]);
  await node().setBalance({ address: operator, value: BigInt(value) });
  await payouts.database.moveClock(60);
  expect(await finish(payouts, auth)).toEqual(paid);
});

test('a spend whose block was reorganized out is landed again', async () => {
  const payouts = await setUp();
  const auth = await (await spends.account()).sign();
  await earned(payouts, auth);
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'landing_again']]);
  await payouts.database.moveClock(60);
  expect(await finish(payouts, auth)).toEqual(paid);
});

test('a spend of another operator stays due until its own operator pays it out', async () => {
  const payouts = await setUp({ operatorKey: devnetKeys.thirdSpare });
  const auth = await (await spends.account()).sign();
  await earned(payouts, auth);
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'other_operator']]);
});

/** The block that holds the claim of the only spend that is due. The chain may still be making it. */
async function claimBlock({ database, spending }: Payouts): Promise<Landed['block']> {
  const { rows } = await database.pool.query<{ claim: Hex }>(
    'select transaction as claim from tollbook.payout',
  );
  return eventually(async () => {
    const landed = await spending.prepaid.findLanded(rows[0]!.claim);
    if (landed.kind !== 'answer' || !landed.value) throw new Error('the claim is in no block');
    return landed.value.block;
  });
}

test('a payout transaction that was reorganized out is replaced, and the payout counts only when final', async () => {
  const { payouts, auth } = await landedSpend();
  const before = await spends.chain.balance(operator);
  await runOnce(payouts);
  await expectBalance(operator, before + auth.amount);
  expect((await lastOf(payouts.database, auth)).type).toBe('spend_earned');
  expect(await troubles(payouts.database)).toEqual([]);
  await reorgFrom(await claimBlock(payouts));
  expect(await spends.chain.balance(operator)).toBe(before);
  expect(await finish(payouts, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  const claimed = (await spendEventsOf(payouts.database, auth)).find(({ type }) => type === 'spend_paid_out');
  const { block_number: number, block_hash: hash } = claimed!.data as Record<string, string>;
  const block = await node()
    .extend(publicActions)
    .getBlock({ blockNumber: BigInt(number!) });
  expect(block.hash).toBe(hash);
});

/** A spend that was answered for, whose authorization went with its block, before anybody claimed it. */
async function authorizedAndReorged(payouts: Payouts, auth: SpendAuth): Promise<void> {
  const landed = await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  if (landed.kind !== 'landed') throw new Error('the spend did not land');
  await earned(payouts, auth, landed);
  await reorgFrom(landed.block);
  expect(await payouts.spending.prepaid.getSpendAuth(spendAuthHash(auth))).toMatchObject({
    value: undefined,
  });
}

test('an authorization that was reorganized out is landed again and paid out', async () => {
  const payouts = await setUp();
  const auth = await (await spends.account()).sign();
  await authorizedAndReorged(payouts, auth);
  const before = await spends.chain.balance(operator);
  expect(await finish(payouts, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
});

test('a spend is lost once its account has used the nonce for another spend in a final block', async () => {
  const payouts = await setUp();
  const account = await spends.account();
  const auth = await account.sign();
  await authorizedAndReorged(payouts, auth);
  const other = await account.sign({ serviceId: 2n });
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(other, 10_000));
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'invalid_nonce']]);
  expect(await finish(payouts, auth)).toEqual({ type: 'spend_failed', reason: 'authorization_reorged' });
});

test('of several due spends the one that expires first is paid out first', async () => {
  const payouts = await setUp();
  const nowSecs = BigInt(Math.floor(Date.now() / 1_000));
  const auths = await Promise.all(
    [5_000n, 4_000n, 6_000n].map(async (secs) => (await spends.account()).sign({ expiry: nowSecs + secs })),
  );
  for (const auth of auths) {
    await earned(payouts, auth);
    await collectPayouts(payouts.database.pool, 1_000);
  }
  const taken = async (max: number) =>
    Promise.all(
      (await takeNewPayouts(payouts.database.pool, max, 60)).map(async ({ stream }) => {
        const { events } = await readStream(payouts.database.pool, stream);
        const [accepted] = events;
        return accepted?.type === 'spend_accepted' ? BigInt(accepted.data.expiry) - nowSecs : undefined;
      }),
    );
  expect(await taken(1)).toEqual([4_000n]);
  expect(await taken(2)).toEqual([5_000n, 6_000n]);
});

const countAt = (blockTag: 'latest' | 'pending') =>
  node().extend(publicActions).getTransactionCount({ address: operator, blockTag });
/** Of the operator, sent and in no block yet. */
const pendingTransactions = async () => (await countAt('pending')) - (await countAt('latest'));

test('a payout transaction that does not land delays no payout of another spend', async () => {
  const payouts = await setUp();
  const auths = await Promise.all([1, 2].map(async () => (await spends.account()).sign()));
  for (const auth of auths) await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  const stalled = await spends.stall();
  const worker = startSpendPayouts(payouts.spending);
  try {
    const sentSoFar = async (): Promise<number> => {
      const text = 'select from tollbook.payout where transaction is not null';
      return (await payouts.database.pool.query(text)).rowCount ?? 0;
    };
    await earned(payouts, auths[0]!);
    await eventually(async () => expect(await pendingTransactions()).toBe(1));
    await earned(payouts, auths[1]!);
    await eventually(async () => expect(await pendingTransactions()).toBe(2));
    await eventually(async () => expect(await sentSoFar()).toBe(2));
  } finally {
    await stalled.resume();
    await worker.stop();
  }
  for (const auth of auths) expect(await finish(payouts, auth)).toEqual(paid);
});

test('payouts that wait for finality take no turn from new ones, however early they expire', async () => {
  const { database } = await setUp();
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.payout (stream, expiry, transaction, due_at, created_at)
       select 'spend:sent-' || at, at, '0xaa', tollbook.clock(), tollbook.clock() from generate_series(1, 20) at
       union all
       select 'spend:new-' || at, at, null, tollbook.clock(), tollbook.clock() from generate_series(1001, 1002) at`,
    ),
  );
  const taken = await takeNewPayouts(database.pool, 16, 60);
  expect(taken.map(({ stream }) => stream)).toEqual(['spend:new-1001', 'spend:new-1002']);
  expect(await takeSentPayouts(database.pool, 16, 60)).toHaveLength(16);
});

test('a payout whose gas costs more than the allowed part of its amount is postponed with an alert, and sent when gas is cheap', async () => {
  // half of a million atoms pays for 500,000 gas at one wei
  const { payouts, auth } = await landedSpend({ atomsPerNativeUnit: 10n ** 18n });
  const count = await countAt('pending');
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'gas_too_expensive']]);
  expect(await countAt('pending')).toBe(count);
  const [postponed, ...more] = (await readEvents(payouts.database.db, 0, 100)).filter(
    ({ type }) => type === 'operator_payouts_postponed',
  );
  expect([postponed?.data, more]).toMatchObject([{ reason: 'gas_too_expensive' }, []]);
  const cheap = await setUp();
  await payouts.database.moveClock(60);
  const { settings } = cheap.spending;
  expect(await finish({ ...payouts, spending: { ...payouts.spending, settings } }, auth)).toEqual(paid);
});

test('a payout may cost its whole amount shortly before its expiry, and never more than that or the highest fee', async () => {
  const secs = (await chainNow()).timestamp;
  const { baseFeePerGas } = await chainNow();
  const gasPrice = (baseFeePerGas ?? 0n) + 10n ** 9n;
  // a payout uses 50,000 to 80,000 gas: more than half of the amount, less than all of it
  const atomsPerNativeUnit = (10n ** 18n * 1_000_000n) / (90_000n * gasPrice);
  const auths = [
    await (await spends.account()).sign({ expiry: secs + 3_600n }),
    await (await spends.account()).sign({ expiry: secs + 100n }),
  ];
  const reasons: unknown[] = [];
  for (const change of [{ maxFeePerGasWei: 1n }, { atomsPerNativeUnit }]) {
    const payouts = await setUp(change);
    for (const auth of auths) await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
    for (const auth of auths) await earned(payouts, auth);
    await runOnce(payouts);
    reasons.push(await troubles(payouts.database));
  }
  const postponed = ['open', 1, 'gas_too_expensive'];
  expect(reasons).toEqual([[postponed, postponed], [postponed]]);
});

// from here on the chain's clock is moved

/** Past the expiry of what is signed for a minute. */
async function expire({ database }: Payouts): Promise<void> {
  await node().increaseTime({ seconds: 100 });
  await node().mine({ blocks: 4 });
  await database.moveClock(7_200);
}
const forAMinute = async () => ({ expiry: (await chainNow()).timestamp + 60n });

/** An earned spend that has landed and expires in a minute. */
const landedForAMinute = async () => landedSpend({}, await forAMinute());

test('a payout transaction whose landing was not observed is recorded later', async () => {
  const { payouts, auth } = await landedForAMinute();
  const claim = await payouts.spending.prepaid.claimPayment(spendAuthHash(auth), operator, 10_000);
  await expire(payouts);
  await runOnce(payouts);
  const last = (await spendEventsOf(payouts.database, auth)).at(-1);
  const { transaction } = claim as { transaction: Hex };
  expect(last).toMatchObject({ type: 'spend_paid_out', data: { transaction } });
});

test('a spend that its account reclaimed is lost and not taken for a payout', async () => {
  const { payouts, auth } = await landedForAMinute();
  await expire(payouts);
  await callAs(spends.chain.chain, devnetKeys.secondSpare, {
    address: prepaidContractAddress,
    artifact: prepaidContractArtifact,
    functionName: 'reclaimExpiredAuth',
    args: [spendAuthHash(auth), auth.commitment],
  });
  await runOnce(payouts);
  expect(await troubles(payouts.database)).toEqual([['open', 1, 'reclaimed']]);
  await payouts.database.moveClock(7_300);
  expect(await finish(payouts, auth)).toEqual({ type: 'spend_failed', reason: 'reclaimed' });
});

test('a spend is lost when its payout transaction is reorganized out after the expiry', async () => {
  const { payouts, auth } = await landedForAMinute();
  await runOnce(payouts);
  await reorgFrom(await claimBlock(payouts));
  await expire(payouts);
  expect(await finish(payouts, auth)).toEqual({ type: 'spend_failed', reason: 'spend_expired' });
});

test('an expired spend is lost and logged as lost', async () => {
  const { payouts, auth } = await landedForAMinute();
  await node().increaseTime({ seconds: 100 });
  await node().mine({ blocks: 1 });
  await runOnce(payouts);
  expect(await lastOf(payouts.database, auth)).toEqual({ type: 'spend_failed', reason: 'spend_expired' });
  expect(await troubles(payouts.database)).toEqual([['failed', 1, 'spend_expired']]);
  const listed = await tollbook(['spend', 'list'], { DATABASE_URL: payouts.database.url });
  expect(listed.stdout).toContain('lost  spend_expired');
  await payouts.database.moveClock(7_200);
  expect(await runOnce(payouts)).toBe(0);
});
