import { randomUUID } from 'node:crypto';
import { createTestClient, http, publicActions } from 'viem';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { creditsAddress } from '../../src/devnet/credits.ts';
import { type SpendAuth, spendAuthHash } from '../../src/domain/spend-auth.ts';
import { createCredits } from '../../src/peers/credits.ts';
import { claimSpend } from '../../src/routing/claim-spend.ts';
import { createSpendQueue } from '../../src/routing/spend-queue.ts';
import type { Spending } from '../../src/routing/spend.ts';
import { takeSpend, earnSpend } from '../../src/routing/take-spend.ts';
import { collectSpends, listTroubledSpends, takeSpends } from '../../src/store/spend.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startRpcStub } from '../peers/rpc-stub.ts';
import { tollbook } from '../support/program.ts';
import { operator } from '../support/spend.ts';
import { storyOf, useSpendChain } from '../support/spend-gateway.ts';
import { eventually } from '../support/wait.ts';

const spends = useSpendChain();
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });

async function setUp(change: Partial<Spending['settings']> = {}) {
  const database = await createDatabase();
  const routing = {
    ...database,
    lane: laneOn(database),
    log: pino({ level: 'silent' }),
    processId: randomUUID(),
    running: new Set<Promise<unknown>>(),
  };
  const settings: Spending['settings'] = {
    network: 'eip155:84532',
    chainId: 84_532,
    rpcUrl: spends.chain.rpcUrl,
    contract: creditsAddress,
    token: spends.chain.token,
    operatorKey: devnetKeys.operator,
    recipient: undefined,
    serviceId: 1,
    minCharge: 1n,
    maxSpend: 10n ** 9n,
    atomsPerUnit: 1_000_000n,
    claimMarginSecs: 300,
    authorizeTimeoutMs: 5_000,
    nonceWaitMs: 0,
    exposure: 0n,
    ...change,
  };
  const { chainId, rpcUrl, contract, operatorKey: privateKey } = settings;
  const credits = createCredits({ chainId, rpcUrl, contract, privateKey, timeoutMs: 2_000 });
  onTestFinished(() => credits.close());
  const spending: Spending = { settings, credits, queue: createSpendQueue(8) };
  return { database, routing, spending };
}

type SetUp = Awaited<ReturnType<typeof setUp>>;

/** A spend whose answer was delivered. */
async function earned({ routing, spending }: SetUp, auth: SpendAuth): Promise<void> {
  const digest = `0x${'5e'.repeat(32)}` as const;
  const verified = { auth, authHash: spendAuthHash(auth), digest };
  const taken = await takeSpend(routing, spending, verified, randomUUID(), Buffer.from('{}'));
  if ('kind' in taken) throw new Error('the spend was refused');
  expect(await earnSpend(routing, taken)).toBe(true);
}

/** One round of what the worker does. */
async function work({ routing, spending }: SetUp): Promise<number> {
  await collectSpends(routing.pool, 1_000);
  const due = await takeSpends(routing.pool, 16, 60);
  await Promise.all(due.map((spend) => claimSpend(routing, spending, spend)));
  return due.length;
}

/** What the worker does until the story has ended, while blocks go by. */
const finish = (here: SetUp, auth: SpendAuth) =>
  eventually(async () => {
    await node().mine({ blocks: 1 });
    await work(here);
    const last = await lastOf(here.database, auth);
    expect(['spend_claimed', 'spend_failed']).toContain(last.type);
    return last;
  });
const paid = { type: 'spend_claimed', reason: undefined };

/** Replaces all blocks from this one on by empty ones. */
async function reorgFrom(block: bigint): Promise<void> {
  const depth = (await chainNow()).number - block + 1n;
  await node().request({ method: 'anvil_reorg', params: [Number(depth), []] } as never);
}
const chainNow = () => node().extend(publicActions).getBlock();

const lastOf = async (database: TestDatabase, auth: SpendAuth) => {
  const story = await storyOf(database, auth);
  const last = story.at(-1);
  return { type: last?.type, reason: last && 'reason' in last.data ? last.data.reason : undefined };
};

async function troubles({ pool }: TestDatabase): Promise<unknown[]> {
  const spendsInTrouble = await listTroubledSpends(pool, 100);
  return spendsInTrouble.map(({ status, attempts, reason }) => [status, attempts, reason]);
}

test('an earned spend is paid once, whoever looks at it, and then nobody looks again', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const before = await spends.chain.balance(operator);
  const rounds = await Promise.all([work(here), work(here), work(here)]);
  expect(rounds.reduce((sum, count) => sum + count)).toBe(1);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  expect(await finish(here, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  await here.database.moveClock(600);
  expect(await work(here)).toBe(0);
  expect(await troubles(here.database)).toEqual([]);
});

test('one that this operator has been paid for already is written down as paid', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await here.spending.credits.claimPayment(spendAuthHash(auth), operator, 10_000);
  await earned(here, auth);
  expect(await finish(here, auth)).toEqual(paid);
});

test('what is paid goes to the recipient that the operator names', async () => {
  const recipient = `0x${'ab'.repeat(20)}` as const;
  const here = await setUp({ recipient });
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await work(here);
  expect(await spends.chain.balance(recipient)).toBe(auth.amount);
});

test('while the chain is away nothing is given up, not even behind the expiry; later it is paid', async () => {
  const stub = await startRpcStub(({ response }) => response.destroy());
  const away = await setUp({ rpcUrl: stub.url });
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(away, auth);
  expect(await work(away)).toBe(1);
  await away.database.moveClock(7_200);
  expect(await work(away)).toBe(1);
  expect(await troubles(away.database)).toEqual([['open', 2, 'chain_unavailable']]);
  const listed = await tollbook(['spend', 'list'], { DATABASE_URL: away.database.url });
  expect(listed.stdout).toContain(`tried again  chain_unavailable`);
  expect(listed.stdout).toContain(spendAuthHash(auth));
  const back = await setUp();
  await away.database.moveClock(8_000);
  expect(await finish({ ...away, spending: back.spending }, auth)).toEqual(paid);
  expect(await troubles(away.database)).toEqual([]);
});

test('a key without ether tries again, and is not given up before the spend has expired', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const value = await node().request({ method: 'eth_getBalance', params: [operator, 'latest'] } as never);
  await node().setBalance({ address: operator, value: 0n });
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'not_sent']]);
  await node().setBalance({ address: operator, value: BigInt(value) });
  await here.database.moveClock(60);
  expect(await finish(here, auth)).toEqual(paid);
});

test('one whose block is gone is landed again', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await earned(here, auth);
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'landed_again']]);
  await here.database.moveClock(60);
  expect(await finish(here, auth)).toEqual(paid);
});

test('one of another contract or operator waits for its own', async () => {
  const here = await setUp({ operatorKey: devnetKeys.thirdSpare });
  const auth = await (await spends.account()).sign();
  await earned(here, auth);
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'other_operator']]);
});

// last: it moves the chain's clock
test('one that has expired is lost, and its operator is told', async () => {
  const here = await setUp();
  const expiry = BigInt(Math.floor(Date.now() / 1_000) + 60);
  const auth = await (await spends.account()).sign({ expiry });
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await node().increaseTime({ seconds: 100 });
  await node().mine({ blocks: 1 });
  await work(here);
  expect(await lastOf(here.database, auth)).toEqual({ type: 'spend_failed', reason: 'spend_expired' });
  expect(await troubles(here.database)).toEqual([['failed', 1, 'spend_expired']]);
  const listed = await tollbook(['spend', 'list'], { DATABASE_URL: here.database.url });
  expect(listed.stdout).toContain('lost  spend_expired');
  await here.database.moveClock(7_200);
  expect(await work(here)).toBe(0);
});
