import { randomUUID } from 'node:crypto';
import { createTestClient, http, publicActions, toFunctionSelector } from 'viem';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { shieldedCredits } from '../../src/devnet/contracts.ts';
import { creditsAddress } from '../../src/devnet/credits.ts';
import { callAs } from '../../src/devnet/deploy.ts';
import type { Hex } from '../../src/domain/primitives.ts';
import { type SpendAuth, spendAuthHash } from '../../src/domain/spend-auth.ts';
import { createCredits, type CreditsAnswer } from '../../src/peers/credits.ts';
import { claimSpend } from '../../src/routing/claim-spend.ts';
import { createOperatorFunds } from '../../src/routing/operator-funds.ts';
import { createSpendQueue } from '../../src/routing/spend-queue.ts';
import type { Spending } from '../../src/routing/spend.ts';
import { earnSpend, noteAuthorized, takeSpend } from '../../src/routing/take-spend.ts';
import { collectSpends, exposeSpend, listTroubledSpends, takeSpends } from '../../src/store/spend.ts';
import { readStream } from '../../src/store/streams.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startRpcStub } from '../peers/rpc-stub.ts';
import { type Lie, startRpcProxy } from '../support/rpc-proxy.ts';
import { tollbook } from '../support/program.ts';
import { operator } from '../support/spend.ts';
import { storyOf, useSpendChain } from '../support/spend-gateway.ts';
import { eventually } from '../support/wait.ts';

type Landed = Extract<CreditsAnswer, { kind: 'landed' }>;

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
  const spending: Spending = {
    settings,
    credits,
    queue: createSpendQueue(8),
    funds: createOperatorFunds(credits),
  };
  return { database, routing, spending };
}

type SetUp = Awaited<ReturnType<typeof setUp>>;

/** A spend whose answer was delivered. */
async function earned({ routing, spending }: SetUp, auth: SpendAuth, landed?: Landed): Promise<void> {
  const digest = `0x${'5e'.repeat(32)}` as const;
  const verified = { auth, authHash: spendAuthHash(auth), digest };
  const taken = await takeSpend(routing, spending, verified, randomUUID(), Buffer.from('{}'));
  if ('kind' in taken) throw new Error('the spend was refused');
  if (landed) noteAuthorized(routing, taken, landed);
  expect(await earnSpend(routing, taken)).toBe(true);
}

/** One round of what the worker does. */
async function work({ routing, spending }: SetUp): Promise<number> {
  await collectSpends(routing.pool, 1_000);
  const due = await takeSpends(routing.pool, 16, 60);
  await Promise.all(due.map((spend) => claimSpend(routing, spending, spend)));
  return due.length;
}

async function dueSpends({ routing }: SetUp) {
  await collectSpends(routing.pool, 1_000);
  return takeSpends(routing.pool, 16, 0);
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

/** Replaces all blocks from this one on by empty ones; a block that comes meanwhile makes that too few. */
async function reorgFrom(block: Landed['block']): Promise<void> {
  const client = node().extend(publicActions);
  while ((await client.getBlock({ blockNumber: block.number })).hash === block.hash) {
    const depth = (await chainNow()).number - block.number + 1n;
    await node().request({ method: 'anvil_reorg', params: [Number(depth), []] } as never);
  }
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

/** The next look at a spend, and no other, is answered by a node that is behind. */
function answerOldOnce(proxy: { lie: Lie }, auth: SpendAuth, result: string): void {
  let looks = 0;
  proxy.lie = ({ method, params }) => {
    const [call] = params as [{ readonly data?: string }];
    const isFirst = method === 'eth_call' && call.data === spendCallOf(auth) && looks++ === 0;
    return isFirst ? { result } : undefined;
  };
}
const spendCallOf = (auth: SpendAuth): Hex =>
  `${toFunctionSelector('getSpendAuth(bytes32)')}${spendAuthHash(auth).slice(2)}`;

test('one that landed behind the look at it is not given up for the nonce that it has used itself', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const here = await setUp({ rpcUrl: proxy.url });
  const auth = await (await spends.account()).sign();
  await earned(here, auth);
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await node().mine({ blocks: 8 });
  answerOldOnce(proxy, auth, `0x${'00'.repeat(5 * 32)}`);
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'invalid_nonce']]);
  await here.database.moveClock(60);
  expect(await finish(here, auth)).toEqual(paid);
});

test('a claim that a node behind does not show yet is not taken for lost, even behind the expiry', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const here = await setUp({ rpcUrl: proxy.url });
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const call = { to: creditsAddress, data: spendCallOf(auth) };
  const { data: unclaimed } = await node().extend(publicActions).call(call);
  await here.spending.credits.claimPayment(spendAuthHash(auth), operator, 10_000);
  await here.database.moveClock(7_200);
  answerOldOnce(proxy, auth, unclaimed!);
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'already_claimed']]);
  await here.database.moveClock(7_300);
  expect(await finish(here, auth)).toEqual(paid);
});

test('many claims that wait ask together what is final', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const here = await setUp({ rpcUrl: proxy.url });
  for (let at = 0; at < 6; at++) {
    const auth = await (await spends.account()).sign();
    await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
    await earned(here, auth);
  }
  expect(await work(here)).toBe(6);
  await here.database.moveClock(60);
  const asked: string[] = [];
  proxy.lie = ({ method, params }) => void asked.push(`${method} ${String(params[0])}`);
  expect(await work(here)).toBe(6);
  expect(asked.filter((question) => question.startsWith('eth_getTransactionReceipt'))).toHaveLength(6);
  expect(asked.filter((question) => question.endsWith('finalized'))).toHaveLength(1);
});

test('a claim is followed to its end also where the operator has another key by then', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await work(here);
  const { spending } = await setUp({ operatorKey: devnetKeys.thirdSpare });
  await here.database.moveClock(7_200);
  expect(await finish({ ...here, spending }, auth)).toEqual(paid);
});

test('the exposure of a spend ends with it, also where the process did that wrote its end down', async () => {
  const here = await setUp();
  const account = await spends.account();
  const auth = await account.sign();
  await earned(here, auth);
  const [due] = await dueSpends(here);
  expect(await finish(here, auth)).toEqual(paid);
  // as that process left them
  const { stream } = due!;
  const asked = { stream, scope: 'a contract', commitment: auth.commitment, nonce: 0n, amount: 1n };
  expect(await exposeSpend(here.database.pool, { ...asked, limit: 1n, nextNonce: 0n, balance: 1n })).toBe(
    true,
  );
  await claimSpend(here.routing, here.spending, due!);
  const { rows } = await here.database.pool.query('select from tollbook.spend_exposure');
  expect(rows).toHaveLength(0);
});

/** The block that holds the claim of the only spend that is due. */
async function claimBlock({ database, spending }: SetUp): Promise<Landed['block']> {
  const { rows } = await database.pool.query<{ claim: Hex }>('select claim from tollbook.spend_due');
  const landed = await spending.credits.findLanded(rows[0]!.claim);
  if (landed.kind !== 'answer' || !landed.value) throw new Error('the claim is in no block');
  return landed.value.block;
}

test('a claim that went with its block is sent again; until one is final it is none', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const before = await spends.chain.balance(operator);
  await work(here);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  expect((await lastOf(here.database, auth)).type).toBe('spend_earned');
  expect(await troubles(here.database)).toEqual([]);
  await reorgFrom(await claimBlock(here));
  expect(await spends.chain.balance(operator)).toBe(before);
  expect(await finish(here, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
  const claimed = (await storyOf(here.database, auth)).find(({ type }) => type === 'spend_claimed');
  const { block_number: number, block_hash: hash } = claimed!.data as Record<string, string>;
  const block = await node()
    .extend(publicActions)
    .getBlock({ blockNumber: BigInt(number!) });
  expect(block.hash).toBe(hash);
});

/** A spend that was answered for, whose authorization went with its block, before anybody claimed it. */
async function authorizedAndReorged(here: SetUp, auth: SpendAuth): Promise<void> {
  const landed = await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  if (landed.kind !== 'landed') throw new Error('the spend did not land');
  await earned(here, auth, landed);
  await reorgFrom(landed.block);
  expect(await here.spending.credits.getSpendAuth(spendAuthHash(auth))).toMatchObject({ value: undefined });
}

test('an authorization that went with its block is landed again, and claimed', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await authorizedAndReorged(here, auth);
  const before = await spends.chain.balance(operator);
  expect(await finish(here, auth)).toEqual(paid);
  expect(await spends.chain.balance(operator)).toBe(before + auth.amount);
});

test('one whose account has used its nonce for something else meanwhile is lost, as soon as that is final', async () => {
  const here = await setUp();
  const account = await spends.account();
  const auth = await account.sign();
  await authorizedAndReorged(here, auth);
  const other = await account.sign({ serviceId: 2n });
  await spends.withCredits((credits) => credits.authorizeSpend(other, 10_000));
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'invalid_nonce']]);
  expect(await finish(here, auth)).toEqual({ type: 'spend_failed', reason: 'authorization_reorged' });
});

test('of several that are due, the soonest to expire is taken first', async () => {
  const here = await setUp();
  const nowSecs = BigInt(Math.floor(Date.now() / 1_000));
  const auths = await Promise.all(
    [5_000n, 4_000n, 6_000n].map(async (secs) => (await spends.account()).sign({ expiry: nowSecs + secs })),
  );
  for (const auth of auths) {
    await earned(here, auth);
    await collectSpends(here.database.pool, 1_000);
  }
  const taken = async (max: number) =>
    Promise.all(
      (await takeSpends(here.database.pool, max, 60)).map(async ({ stream }) => {
        const { events } = await readStream(here.database.pool, stream);
        const [accepted] = events;
        return accepted?.type === 'spend_accepted' ? BigInt(accepted.data.expiry) - nowSecs : undefined;
      }),
    );
  expect(await taken(1)).toEqual([4_000n]);
  expect(await taken(2)).toEqual([5_000n, 6_000n]);
});

// from here on the chain's clock is moved

/** Past the expiry of what is signed for a minute. */
async function expire({ database }: SetUp): Promise<void> {
  await node().increaseTime({ seconds: 100 });
  await node().mine({ blocks: 4 });
  await database.moveClock(7_200);
}
const forAMinute = async () => ({ expiry: (await chainNow()).timestamp + 60n });

test('a claim that nobody saw land is written down as paid, however late', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign(await forAMinute());
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const claim = await here.spending.credits.claimPayment(spendAuthHash(auth), operator, 10_000);
  await expire(here);
  await work(here);
  const last = (await storyOf(here.database, auth)).at(-1);
  const { transaction } = claim as { transaction: Hex };
  expect(last).toMatchObject({ type: 'spend_claimed', data: { transaction } });
});

test('one that its account took back is lost, and told apart from a claim', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign(await forAMinute());
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await expire(here);
  await callAs(spends.chain.chain, devnetKeys.secondSpare, {
    address: creditsAddress,
    artifact: shieldedCredits,
    functionName: 'reclaimExpiredAuth',
    args: [spendAuthHash(auth), auth.commitment],
  });
  await work(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'reclaimed']]);
  await here.database.moveClock(7_300);
  expect(await finish(here, auth)).toEqual({ type: 'spend_failed', reason: 'reclaimed' });
});

test('a claim that went with its block after the expiry is lost', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign(await forAMinute());
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await work(here);
  await reorgFrom(await claimBlock(here));
  await expire(here);
  expect(await finish(here, auth)).toEqual({ type: 'spend_failed', reason: 'spend_expired' });
});

test('one that has expired is lost, and its operator is told', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign(await forAMinute());
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
