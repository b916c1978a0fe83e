import { createTestClient, http } from 'viem';
import { expect, onTestFinished, test } from 'vitest';
import type { SpendAuth } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { endExposure, exposeSpend } from '../../../../src/chat/store/exposure.ts';
import { pruneShortLived } from '../../../../src/ledger/store/pruning.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import type { ChatGateway } from '../../../support/chat-gateway.ts';
import { operator } from '../../../support/spend.ts';
import { ask, chat, codeOf, secret, spendEventsOf, useSpendChain } from '../../../support/spend-gateway.ts';
import { eventually } from '../../../support/wait.ts';

const spends = useSpendChain();
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });
const twoMillion = {
  spend: { exposure: '"2000000"' },
  times: { authorizeTimeoutMs: 400, nonceWaitMs: 400 },
};

/** From here on nothing gets into a block, until `resume` or the end of the test. */
async function stallChain(): Promise<{ resume(): Promise<void> }> {
  const stalled = await spends.stall();
  onTestFinished(() => stalled.resume());
  return stalled;
}

async function openRows({ pool }: TestDatabase): Promise<unknown[]> {
  const { rows } = await pool.query<{ nonce: string; status: string }>(
    'select nonce, status from tollbook.spend_exposure order by nonce',
  );
  return rows.map(({ nonce, status }) => `${nonce} ${status}`);
}

/** The ledger that gateways leave behind. */
async function soundLedger(...gateways: readonly [ChatGateway, ...ChatGateway[]]): Promise<void> {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  const [{ database }] = gateways;
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
}

test('a spend within the exposure is answered before it lands, and is paid out', async () => {
  const gateway = await spends.gateway({ ...twoMillion });
  const auth = await (await spends.account()).sign();
  const before = await spends.chain.balance(operator);
  const chain = await stallChain();
  expect((await ask(gateway, auth)).status).toBe(200);
  expect(await openRows(gateway.database)).toEqual(['0 open']);
  await chain.resume();
  await eventually(async () => expect(await spends.chain.balance(operator)).toBe(before + auth.amount));
  await eventually(async () => expect(await openRows(gateway.database)).toEqual([]));
  await eventually(async () =>
    expect((await spendEventsOf(gateway.database, auth)).at(-1)?.type).toBe('spend_paid_out'),
  );
  const types = (await spendEventsOf(gateway.database, auth)).map(({ type }) => type);
  expect(types.slice(0, 2)).toEqual(['spend_accepted', 'spend_earned']);
  await soundLedger(gateway);
});

test('a spend beyond the exposure lands before its answer, in every process', async () => {
  const one = await spends.gateway({ ...twoMillion });
  const other = await spends.gateway({ ...twoMillion, database: one.database });
  const account = await spends.account();
  const auths = await Promise.all([0n, 1n, 2n].map((nonce) => account.sign({ nonce })));
  const [first, second, third] = auths as [SpendAuth, SpendAuth, SpendAuth];
  const chain = await stallChain();
  expect((await ask(one, first)).status).toBe(200);
  expect((await ask(other, second)).status).toBe(200);
  expect(await codeOf(await ask(one, third))).toBe('402 authorization_failed');
  expect(one.model.calls.length + other.model.calls.length).toBe(2);
  await chain.resume();
  await eventually(async () => expect(await openRows(one.database)).toEqual([]));
  await eventually(async () => expect((await ask(other, third)).status).toBe(200));
  await soundLedger(one, other);
});

test('of twenty concurrent spends in two processes only as many are answered early as the exposure allows', async () => {
  const one = await spends.gateway({ ...twoMillion });
  const other = await spends.gateway({ ...twoMillion, database: one.database });
  const account = await spends.account();
  const chain = await stallChain();
  const auths = await Promise.all(
    Array.from({ length: 20 }, (_, at) => account.sign({ nonce: BigInt(at % 4), amount: 700_000n })),
  );
  const answers = await Promise.all(
    auths.map((auth, at) => ask(at % 2 === 0 ? one : other, auth, chat(`words ${at}`))),
  );
  const answered = answers.filter(({ status }) => status === 200).length;
  expect(answered).toBeGreaterThan(0);
  expect(answered).toBeLessThanOrEqual(2);
  expect(one.model.calls.length + other.model.calls.length).toBe(answered);
  await chain.resume();
  await eventually(async () => expect(await openRows(one.database)).toEqual([]));
  await soundLedger(one, other);
});

test('an account with a spend that did not land is never again answered before landing', async () => {
  const gateway = await spends.gateway({ ...twoMillion });
  const account = await spends.account();
  const auth = await account.sign();
  const chain = await stallChain();
  // its payer has sent another spend of the same nonce, with another hash, in a pending transaction
  const other = await account.sign({ amount: 1n, serviceId: 2n });
  const landing = spends.withCredits((credits) => credits.authorizeSpend(other, 20_000));
  await eventually(async () => expect((await node().getTxpoolStatus()).pending).toBe(1));
  expect((await ask(gateway, auth)).status).toBe(200);
  await chain.resume();
  expect(await landing).toMatchObject({ kind: 'landed' });
  await eventually(async () => expect(await openRows(gateway.database)).toEqual(['0 failed']));

  const second = await stallChain();
  const next = await account.sign({ nonce: 1n });
  expect(await codeOf(await ask(gateway, next, chat(), secret))).toBe('503 chain_unavailable');
  expect(gateway.model.calls).toHaveLength(1);
  await second.resume();
  await eventually(async () => expect((await ask(gateway, next, chat(), secret)).status).toBe(200));
  // a delivered answer without a payout is recorded after the expiry
  await gateway.database.moveClock(3_700);
  await eventually(async () =>
    expect((await spendEventsOf(gateway.database, account)).map(({ type }) => type)).toContain(
      'spend_failed',
    ),
  );
  expect(await openRows(gateway.database)).toEqual(['0 failed']);
  await soundLedger(gateway);
});

test('a spend without a delivered answer ends its exposure and is not paid out', async () => {
  const gateway = await spends.gateway({ ...twoMillion });
  const account = await spends.account();
  gateway.model.failWith('status_503');
  const auth = await account.sign();
  expect((await ask(gateway, auth)).status).toBe(502);
  gateway.model.failWith(undefined);
  await eventually(async () => expect(await openRows(gateway.database)).toEqual([]));
  // it has landed nevertheless, as later nonces depend on it
  const next = await account.sign({ nonce: 1n });
  await eventually(async () => expect((await ask(gateway, next, chat(), secret)).status).toBe(200));
  const claimed = (await spendEventsOf(gateway.database, auth)).filter(
    ({ type, data }) => type === 'spend_paid_out' && 'nonce' in data && data.nonce === '0',
  );
  expect(claimed).toEqual([]);
  await soundLedger(gateway);
});

test('a spend answered by a process that then ended is landed and paid out by another process', async () => {
  const gateway = await spends.gateway({ ...twoMillion });
  const auth = await (await spends.account()).sign();
  const before = await spends.chain.balance(operator);
  const chain = await stallChain();
  expect((await ask(gateway, auth)).status).toBe(200);
  await eventually(async () => expect((await node().getTxpoolStatus()).pending).toBe(1));
  await gateway.stop();
  // what it has sent is lost with it
  const { pending } = await node().getTxpoolContent();
  const hashes = Object.values(pending).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash));
  for (const hash of hashes) await node().dropTransaction({ hash });
  await chain.resume();
  expect(await spends.chain.balance(operator)).toBe(before);
  expect(await openRows(gateway.database)).toEqual(['0 open']);
  const other = await spends.gateway({ ...twoMillion, database: gateway.database });
  await eventually(async () => expect(await spends.chain.balance(operator)).toBe(before + auth.amount));
  await eventually(async () => expect(await openRows(other.database)).toEqual([]));
  await soundLedger(other);
});

test('waiting for a block ends when the connections are closed', async () => {
  const auth = await (await spends.account()).sign();
  await stallChain();
  const landing = await spends.withCredits(async (credits) => {
    const answer = credits.authorizeSpend(auth, 300_000);
    await eventually(async () => expect((await node().getTxpoolStatus()).pending).toBe(1));
    return { answer };
  });
  expect(await landing.answer).toMatchObject({ kind: 'unknown' });
});

const asked = (at: number, change: object = {}) => ({
  stream: `spend:${at}`,
  scope: '1/0x',
  commitment: '0xaa',
  nonce: BigInt(at),
  amount: 10n,
  limit: 35n,
  nextNonce: 0n,
  balance: 1_000n,
  ...change,
});

test('the exposure of one account is decided one spend at a time', async () => {
  const { pool, moveClock } = await createDatabase();
  // all claim to follow, and three fit
  const rush = Array.from({ length: 20 }, (_, at) => exposeSpend(pool, asked(at, { nextNonce: BigInt(at) })));
  expect((await Promise.all(rush)).filter(Boolean)).toHaveLength(3);
  expect(await exposeSpend(pool, asked(90, { commitment: '0xbb' }))).toBe(false);
  expect(await exposeSpend(pool, asked(91, { commitment: '0xbb', nextNonce: 91n, balance: 9n }))).toBe(false);
  expect(await exposeSpend(pool, asked(91, { commitment: '0xbb', nextNonce: 91n, balance: 19n }))).toBe(true);
  expect(await exposeSpend(pool, asked(92, { commitment: '0xbb', nextNonce: 91n, balance: 19n }))).toBe(
    false,
  );
  expect(await exposeSpend(pool, asked(92, { commitment: '0xbb', nextNonce: 91n, balance: 20n }))).toBe(true);
  expect(await exposeSpend(pool, asked(94, { commitment: '0xbb', nextNonce: 91n }))).toBe(false);
  // no answer was sent for these, and no process reports that
  expect(await pruneShortLived(pool, 1)).toBe(0);
  await moveClock(90_000);
  expect(await pruneShortLived(pool, 100)).toBe(5);
  expect(await exposeSpend(pool, asked(91, { commitment: '0xbb', nextNonce: 91n }))).toBe(true);
  await endExposure(pool, 'spend:91', true);
  expect(await exposeSpend(pool, asked(92, { commitment: '0xbb', nextNonce: 92n }))).toBe(false);
});
