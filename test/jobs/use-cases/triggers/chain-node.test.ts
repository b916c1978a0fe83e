import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../../../support/database.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { askNode } from '../../../support/tokens.ts';
import { eventually } from '../../../support/wait.ts';
import { atomsOf, follower, ledger } from './follower.ts';
import { type EventChain, mintTerms, startEventChain } from './support.ts';

let chain: EventChain;
beforeAll(async () => {
  chain = await startEventChain();
});
afterAll(() => chain.stop());

/** A follower of the chain through a node that can lie. */
async function behindProxy() {
  const database = await createDatabase();
  const calls = ledger();
  const node = await startRpcProxy(chain.url);
  const terms = mintTerms({ ...chain, url: node.url }, { finality: { confirmations: 0 } });
  return { database, calls, node, terms, ...follower(database, terms, calls) };
}

test('a node that refuses ranges is asked for shorter ones, down to single blocks, without a gap', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const node = await startRpcProxy(chain.url);
  const startBlock = (await chain.height()) + 1n;
  await chain.mint(71);
  await chain.mine(200);
  await chain.mint(72);
  await chain.mine(200);
  await chain.mint(73);
  const widths: number[] = [];
  node.lie = ({ method, params }) => {
    if (method !== 'eth_getLogs') return undefined;
    const { fromBlock, toBlock } = params[0] as { fromBlock?: string; toBlock?: string };
    if (fromBlock === undefined) return undefined;
    const width = Number(toBlock) - Number(fromBlock) + 1;
    widths.push(width);
    return width > 60
      ? { error: { code: -32_005, message: 'query returned more than 10000 results' } }
      : undefined;
  };
  const terms = mintTerms({ ...chain, url: node.url }, { startBlock, finality: { confirmations: 0 } });
  const ranges = follower(database, terms, calls);
  // a look ends after a while, and the next one continues
  await eventually(async () => {
    await ranges.look();
    expect([atomsOf(calls), calls.repeated()]).toEqual([[71, 72, 73], 0]);
  });
  expect(Math.max(...widths)).toBeGreaterThan(300);
  // every range at all is refused: single blocks are read by their hash
  node.lie = ({ method, params }) =>
    method === 'eth_getLogs' && 'fromBlock' in (params[0] as object)
      ? { error: { code: -32_000, message: 'ranges are not allowed' } }
      : undefined;
  const again = ledger();
  const singles = follower(await createDatabase(), terms, again);
  await eventually(async () => {
    await singles.look();
    expect(atomsOf(again)).toEqual([71, 72, 73]);
  });
});

test('a range with more logs than a process can read without a pause for others is read in parts', async () => {
  const calls = ledger();
  const node = await startRpcProxy(chain.url);
  const startBlock = (await chain.height()) + 1n;
  await chain.mint(76);
  await chain.mine(200);
  await chain.mint(77);
  node.lie = ({ method, params }) => {
    const { fromBlock, toBlock } = Object(params[0]) as { fromBlock?: string; toBlock?: string };
    if (method !== 'eth_getLogs' || Number(toBlock) - Number(fromBlock) < 60) return undefined;
    return fromBlock === undefined ? undefined : { result: [], filler: 'a'.repeat(2 * 1024 * 1024) };
  };
  const terms = mintTerms({ ...chain, url: node.url }, { startBlock, finality: { confirmations: 0 } });
  const { look, lag } = follower(await createDatabase(), terms, calls);
  await eventually(async () => {
    await look();
    expect(await lag()).toMatchObject({ problem: undefined });
    expect(atomsOf(calls)).toEqual([76, 77]);
  });
});

test('logs that were not asked for are not believed: the cursor stays, and the operator sees why', async () => {
  const { calls, node, look, lag } = await behindProxy();
  await look();
  const reached = (await lag())?.block;
  await chain.mint(81);
  const [log] = (await logsOf(chain)) as [Record<string, unknown>];
  const lies = [
    { ...log, address: `0x${'77'.repeat(20)}` },
    { ...log, topics: [`0x${'11'.repeat(32)}`] },
    { ...log, topics: [(log['topics'] as string[])[0], `0x${'0'.repeat(64)}`, `0x${'0'.repeat(64)}`] },
    { ...log, blockNumber: '0x1' },
    { ...log, blockHash: `0x${'22'.repeat(32)}` },
    { ...log, removed: true },
  ];
  for (const lie of lies) {
    node.lie = ({ method }) => (method === 'eth_getLogs' ? { result: [lie] } : undefined);
    await look();
    expect(await lag()).toMatchObject({ problem: 'malformed' });
  }
  node.lie = ({ method }) => (method === 'eth_getLogs' ? { result: [log, log] } : undefined);
  await look();
  expect(await lag()).toMatchObject({ problem: expect.stringMatching(/answers_differ|malformed/) });
  expect(atomsOf(calls)).toEqual([]);
  expect(reached).toBeDefined();
  node.lie = () => undefined;
  await look();
  expect(atomsOf(calls)).toEqual([81]);
  expect(await lag()).toMatchObject({ problem: undefined });
});

test('a head that goes back, an unknown block and another chain leave the cursor where it is', async () => {
  const { database, calls, node, terms, look, lag } = await behindProxy();
  await look();
  await chain.mint(91);
  await look();
  const reached = (await lag())?.block;
  const old = await chainBlock(chain, (reached ?? 0n) - 20n);
  node.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'latest' ? { result: old } : undefined;
  await look();
  expect(await lag()).toMatchObject({ block: reached, problem: 'head_below_cursor', blocks: 0 });
  await chain.mine(2);
  node.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] !== 'latest' ? { result: null } : undefined;
  await look();
  expect(await lag()).toMatchObject({ block: reached, problem: 'missing_block' });
  const elsewhere = follower(database, { ...terms, chainId: 1 }, calls);
  await elsewhere.look();
  expect(await lag()).toMatchObject({ block: reached, problem: 'wrong_chain' });
  expect([atomsOf(calls), calls.repeated()]).toEqual([[91], 0]);
});

test('words of a node that no column and no alert can hold change nothing: the problem is noted, and the next look continues', async () => {
  const { calls, node, look, lag } = await behindProxy();
  await look();
  await chain.mint(94);
  node.lie = () => ({ error: { code: -32_000, message: 'no\u0000\n\u202e\ud800 room' } });
  await look();
  expect(await lag()).toMatchObject({ problem: 'rpc_error: -32000: no room' });
  node.lie = () => undefined;
  await look();
  expect(atomsOf(calls)).toEqual([94]);
});

test('a node whose head stays below the cursor is a problem, so that the operator gets an alert about a head that never existed', async () => {
  const { database, node, look, lag } = await behindProxy();
  const head = (await chainBlock(chain, await chain.height())) as Record<string, unknown>;
  const invented = { ...head, number: '0xffffffff', timestamp: '0xffffffffff' };
  node.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'latest' ? { result: invented } : undefined;
  await look();
  node.lie = () => undefined;
  await chain.mint(95);
  await look();
  expect(await lag()).toMatchObject({ block: 0xffffffffn, problem: 'head_below_cursor' });
  await database.moveClock(400);
  expect(await lag()).toMatchObject({ isBehind: true });
});

test('a node that has a head but no logs for five minutes causes one alert to the operator, however often it is asked', async () => {
  const { database, calls, node, look, lag } = await behindProxy();
  await look();
  await chain.mint(96);
  node.lie = ({ method }) =>
    method === 'eth_getLogs' ? { error: { code: -32_000, message: 'no logs' } } : undefined;
  await look();
  expect(await lag()).toMatchObject({ problem: 'rpc_error: -32000: no logs', isBehind: false });
  await database.moveClock(310);
  await look();
  expect(await lag()).toMatchObject({ isBehind: true });
  node.lie = () => undefined;
  await look();
  expect(await lag()).toMatchObject({ problem: undefined, isBehind: false });
  expect(atomsOf(calls)).toEqual([96]);
});

test('a final block that is replaced stops the trigger and alerts the operator, who lets it continue with start_block', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const terms = mintTerms(chain);
  const { look, lag } = follower(database, terms, calls);
  // the events of other tests are final
  await chain.mine(3);
  await look();
  const before = await chain.height();
  await chain.mint(100);
  await eventually(async () => {
    await look();
    expect(atomsOf(calls)).toEqual([100]);
  });
  await chain.reorg(before);
  await chain.mint(101);
  await chain.mine(5);
  await look();
  expect(await lag()).toMatchObject({ problem: 'final_block_replaced', isBehind: true });
  expect(atomsOf(calls)).toEqual([100]);
  await follower(database, { ...terms, startBlock: before }, calls).look();
  expect(atomsOf(calls)).toEqual([100, 101]);
});

function rpc({ url }: EventChain, method: string, params: readonly unknown[]): Promise<unknown> {
  return askNode(url, method, params);
}

async function logsOf(of: EventChain): Promise<unknown> {
  const { event, addresses } = mintTerms(of);
  const at = `0x${((await of.height()) - 1n).toString(16)}`;
  const logs = (await rpc(of, 'eth_getLogs', [
    { address: addresses, topics: event.topics, fromBlock: at, toBlock: 'latest' },
  ])) as unknown[];
  return logs.slice(-1);
}

function chainBlock(of: EventChain, number: bigint): Promise<unknown> {
  return rpc(of, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, false]);
}
