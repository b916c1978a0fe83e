import fc from 'fast-check';
import { createPublicClient, http } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  createChain,
  type AuthorizationFound,
  type Chain,
} from '../../../../src/payments/peers/chain/chain.ts';
import type { ExpectedTransfer } from '../../../../src/payments/rules/payment.ts';
import { type AuthorizationChain, placeOf, rpc, startAuthorizationChain } from './authorizations.ts';
import {
  refuse,
  type RpcRequest,
  type RpcStub,
  startRpcStub,
  succeed,
} from '../../../base/peers/rpc/rpc-stub.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

let devnet: AuthorizationChain;
beforeAll(async () => {
  devnet = await startAuthorizationChain();
});
afterAll(async () => {
  await devnet.stop();
});

function open(rpcUrl = devnet.url): Chain {
  const chain = createChain({ chainId: 84_532, rpcUrl, timeoutMs: 20_000 });
  onTestFinished(() => chain.close());
  return chain;
}

const node = () => createPublicClient({ transport: http(devnet.url) });

interface Range {
  readonly from: number;
  readonly to: number;
}

/** The blocks that a request for logs covers; undefined for other requests. */
function rangeOf({ body }: RpcRequest): Range | undefined {
  if (body.method !== 'eth_getLogs') return undefined;
  const { fromBlock, toBlock } = body.params[0] as { fromBlock?: string; toBlock?: string };
  if (fromBlock === undefined) return undefined;
  return { from: Number(fromBlock), to: Number(toBlock) };
}

const rangesOf = (stub: RpcStub) => stub.requests.flatMap((request) => rangeOf(request) ?? []);
const widthsOf = (stub: RpcStub) => rangesOf(stub).map(({ from, to }) => to - from + 1);

/** Passes everything on to the devnet, but what `answer` answers itself. */
function proxy(answer: (request: RpcRequest) => boolean): Promise<RpcStub> {
  return startRpcStub(async (request) => {
    if (answer(request)) return;
    succeed(request, await rpc(devnet.url, request.body.method, request.body.params));
  });
}

/** Passes everything on to the devnet, with changes to the logs of ranges of blocks, or of a single one that its hash names. */
function changing(of: 'range' | 'block', change: (logs: never) => unknown): Promise<RpcStub> {
  return startRpcStub(async (request) => {
    const { method, params } = request.body;
    const result = await rpc(devnet.url, method, params);
    const isMeant = method === 'eth_getLogs' && (rangeOf(request) === undefined) === (of === 'block');
    succeed(request, isMeant ? change(result as never) : result);
  });
}

async function timeOf({ blockNumber }: { readonly blockNumber: bigint }): Promise<number> {
  return Number((await node().getBlock({ blockNumber })).timestamp);
}

describe('an authorization looked up without its transaction', () => {
  test('is paid by the transfer that belongs to it', async () => {
    const expected = devnet.expected();
    await devnet.use(devnet.expected());
    const receipt = await devnet.use(expected);
    const logIndex = receipt.logs[1]?.logIndex;
    const blockTimeSecs = await timeOf(receipt);
    const paid = { kind: 'paid', ...placeOf(receipt), logIndex, blockTimeSecs };
    expect(await open().findAuthorization(expected, 0)).toEqual(paid);
    expect(await open().findSettlement(receipt.transactionHash, expected)).toMatchObject({
      kind: 'paid',
      logIndex,
    });
  });

  test('is canceled where its payer canceled it', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.cancel(expected);
    expect(await open().findAuthorization(expected, 0)).toEqual({ kind: 'canceled', ...placeOf(receipt) });
  });

  test('is used otherwise where it paid another payee', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.use({ ...expected, payTo: devnet.token });
    const otherwise = { kind: 'used_otherwise', ...placeOf(receipt) };
    expect(await open().findAuthorization(expected, 0)).toEqual(otherwise);
  });

  test('is used otherwise where it paid the payee less, whatever else of the payer reached the payee', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.use({ ...expected, value: 1n });
    const otherwise = { kind: 'used_otherwise', ...placeOf(receipt) };
    expect(await open().findAuthorization(expected, 0)).toEqual(otherwise);
  });

  test.each([
    ['its transfer', (logs: object[]) => logs.slice(0, 1)],
    ['a whole block of logs', () => []],
  ])('is paid also where a node leaves %s out of its first answer', async (what, change) => {
    const expected = devnet.expected();
    const { transactionHash } = await devnet.use(expected);
    const lying = async () => {
      let answers = 0;
      return open((await changing('block', (logs: object[]) => (answers++ === 0 ? change(logs) : logs))).url);
    };
    expect(await (await lying()).findSettlement(transactionHash, expected)).toMatchObject({ kind: 'paid' });
    // whose log of its end was shown before
    const found = await (await lying()).findAuthorization(expected, 0);
    expect(found).toMatchObject(
      what === 'its transfer' ? { kind: 'paid' } : { kind: 'unavailable', cause: 'inconsistent' },
    );
  });

  test('is absent while it is unused, whatever other authorizations were used', async () => {
    const used = devnet.expected();
    await devnet.use(used);
    for (const change of [
      { nonce: devnet.expected().nonce },
      { from: devnet.token },
      { asset: used.payTo },
    ]) {
      expect(await open().findAuthorization({ ...used, ...change }, 0)).toEqual({ kind: 'absent' });
    }
  });

  test('is absent after a reorg removed its transaction', async () => {
    const expected = devnet.expected();
    const snapshot = await devnet.rpc('evm_snapshot');
    await devnet.use(expected);
    expect(await open().findAuthorization(expected, 0)).toMatchObject({ kind: 'paid' });
    expect(await devnet.rpc('evm_revert', snapshot)).toBe(true);
    expect(await open().findAuthorization(expected, 0)).toEqual({ kind: 'absent' });
  });
});

// a node that answers for three blocks at a time: a look has about 750
const isShort = ({ from, to }: Range) => to - from < 3;

describe('thousands of blocks later', () => {
  /** More than one range, and more than three looks in ranges of three blocks find; no more: anvil mines ever more slowly. */
  const mined = 2_400;
  let expected: ExpectedTransfer;
  let paid: AuthorizationFound;
  let usedAtSecs: number;
  let latestSecs: number;
  beforeAll(async () => {
    expected = devnet.expected();
    const receipt = await devnet.use(expected);
    usedAtSecs = await timeOf(receipt);
    const logIndex = receipt.logs[1]?.logIndex ?? -1;
    paid = { kind: 'paid', ...placeOf(receipt), logIndex, blockTimeSecs: usedAtSecs };
    await devnet.rpc('anvil_mine', `0x${mined.toString(16)}`, '0x2');
    latestSecs = Number((await node().getBlock()).timestamp);
  });

  test('a use is found from its block time on, in ranges of two thousand blocks', async () => {
    const stub = await proxy(() => false);
    expect(await open(stub.url).findAuthorization(expected, usedAtSecs)).toEqual(paid);
    expect(Math.max(...widthsOf(stub))).toBe(2_000);
    expect(stub.requests.length).toBeLessThan(10);
  });

  test('a use that is further back than one look may ask is found by the looks after it, each after the blocks of the one before', async () => {
    const stub = await proxy((request) => {
      const range = rangeOf(request);
      if (range === undefined || isShort(range)) return false;
      refuse(request, { code: -32_005, message: 'range exceeds limit of 3' });
      return true;
    });
    const chain = open(stub.url);
    // blocks that become final meanwhile are searched again
    const { number: final } = await node().getBlock({ blockTag: 'finalized' });
    for (const look of [1, 2, 3]) {
      const answer = await chain.findAuthorization(expected, usedAtSecs);
      expect([look, answer]).toEqual([look, { kind: 'unavailable', cause: 'range_too_long' }]);
    }
    expect(await chain.findAuthorization(expected, usedAtSecs)).toEqual(paid);
    const blocks = rangesOf(stub)
      .filter(isShort)
      .flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i))
      .filter((block) => BigInt(block) <= final);
    expect(new Set(blocks).size).toBe(blocks.length);
  });

  test('the search does not go far beyond the given time', async () => {
    const stub = await proxy(() => false);
    expect(await open(stub.url).findAuthorization(expected, latestSecs)).toEqual({ kind: 'absent' });
    expect(stub.requests).toHaveLength(3);
  });

  test.each([
    ['an error', 1_999, 200],
    ['an error', 300, 200],
    ['an error', 50, 200],
    ['an error', 20, 200],
    ['status 400', 700, 400],
    ['status 413', 700, 413],
  ])('a use is found where the node refuses, with %s, more than %i blocks', async (_, most, status) => {
    const stub = await proxy((request) => {
      const range = rangeOf(request);
      if (range === undefined || range.to - range.from < most) return false;
      request.response.statusCode = status;
      refuse(request, { code: -32_005, message: `range exceeds limit of ${most}` });
      return true;
    });
    expect(await open(stub.url).findAuthorization(expected, usedAtSecs)).toEqual(paid);
  });

  test('the answer is unavailable if the node refuses even a single block', async () => {
    const stub = await proxy((request) => {
      if (rangeOf(request) === undefined) return false;
      refuse(request, { code: -32_600, message: 'no logs here' });
      return true;
    });
    const answer = await open(stub.url).findAuthorization(expected, usedAtSecs);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
    expect(widthsOf(stub)).toEqual([2_000, 1_000, 500, 250, 125, 62, 50, 25, 12, 6, 3, 1]);
  });

  test('the answer is unavailable, without narrower ranges, where the node fails for another reason', async () => {
    const stub = await proxy((request) => {
      if (rangeOf(request) === undefined) return false;
      request.response.writeHead(429).end();
      return true;
    });
    const answer = await open(stub.url).findAuthorization(expected, usedAtSecs);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'status_429' });
    expect(rangesOf(stub)).toHaveLength(1);
  });

  test('the answer is unavailable if one block or one range of many is missing', async () => {
    const noBlock = await proxy((request) => {
      const isOld = request.body.method === 'eth_getBlockByNumber' && request.body.params[0] !== 'latest';
      if (isOld) succeed(request, null);
      return isOld;
    });
    expect(await open(noBlock.url).findAuthorization(expected, usedAtSecs)).toEqual({
      kind: 'unavailable',
      cause: 'missing_block',
    });
    let ranges = 0;
    const noRange = await proxy((request) => {
      if (rangeOf(request) === undefined || ++ranges < 2) return false;
      succeed(request, null);
      return true;
    });
    const answer = await open(noRange.url).findAuthorization(expected, usedAtSecs);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });
});

describe('a log is not accepted', () => {
  const other = `0x${'cd'.repeat(32)}`;

  test.each([
    ['removed', { removed: true }],
    ['of no block', { blockHash: null, blockNumber: null }],
    ['of a block that is not sealed', { blockHash: `0x${'0'.repeat(64)}` }],
    ['of a block out of the range', { blockNumber: '0xffffff' }],
    ['of another token', { address: `0x${'0e'.repeat(20)}` }],
    ['of a transaction without a hash', { transactionHash: null }],
  ])('when it is %s', async (_, change) => {
    const expected = devnet.expected();
    await devnet.cancel(expected);
    const stub = await changing('range', (logs: object[]) => logs.map((log) => ({ ...log, ...change })));
    expect(await open(stub.url).findAuthorization(expected, 0)).toMatchObject({
      kind: 'unavailable',
      cause: 'malformed',
    });
  });

  test('when it is of another event, payer or nonce', async () => {
    const expected = devnet.expected();
    await devnet.use(expected);
    for (const at of [0, 1, 2]) {
      const stub = await changing('range', (logs: { topics: string[] }[]) =>
        logs.map((log) => ({ ...log, topics: log.topics.with(at, other) })),
      );
      expect(await open(stub.url).findAuthorization(expected, 0)).toMatchObject({
        kind: 'unavailable',
        cause: 'malformed',
      });
    }
  });

  test.each([
    ['are missing', () => []],
    ['have it elsewhere', renumbered],
    ['have another in its place', (logs: object[]) => logs.slice(1)],
  ])('when the logs of its block %s', async (_, change) => {
    for (const act of [devnet.use, devnet.cancel]) {
      const expected = devnet.expected();
      await act(expected);
      const stub = await changing('block', change);
      expect(await open(stub.url).findAuthorization(expected, 0)).toEqual({
        kind: 'unavailable',
        cause: 'inconsistent',
      });
    }
  });

  test('when the logs of its block are of another block', async () => {
    const expected = devnet.expected();
    await devnet.use(expected);
    const stub = await changing('block', (logs: object[]) =>
      logs.map((log) => ({ ...log, blockHash: other })),
    );
    expect(await open(stub.url).findAuthorization(expected, 0)).toMatchObject({
      kind: 'unavailable',
      cause: 'malformed',
    });
  });

  test('when there are two of one nonce', async () => {
    const expected = devnet.expected();
    await devnet.use(expected);
    const stub = await changing('range', (logs: object[]) => [...logs, ...logs]);
    expect(await open(stub.url).findAuthorization(expected, 0)).toEqual({
      kind: 'unavailable',
      cause: 'inconsistent',
    });
  });

  test('when the node returns all logs of the token', async () => {
    const expected = devnet.expected();
    await devnet.use(expected);
    const all = await rpc(devnet.url, 'eth_getLogs', [{ address: devnet.token, fromBlock: '0x0' }]);
    const stub = await changing('range', () => all);
    expect(await open(stub.url).findAuthorization(expected, 0)).toMatchObject({
      kind: 'unavailable',
      cause: 'malformed',
    });
  });
});

test('the number of requests is bounded however long the chain is', async () => {
  const latest = 1n << 63n;
  const stub = await startRpcStub((request) => {
    const [at] = request.body.params;
    if (request.body.method === 'eth_getLogs') return succeed(request, []);
    const number = at === 'latest' ? `0x${latest.toString(16)}` : at;
    return succeed(request, { number, hash: `0x${'bb'.repeat(32)}`, timestamp: '0x7fffffff' });
  });
  const answer = await open(stub.url).findAuthorization(devnet.expected(), 1);
  expect(answer).toEqual({ kind: 'unavailable', cause: 'range_too_long' });
  expect(stub.requests.length).toBeLessThan(256 + 100);
});

test('every block since the given time is searched, and few before it, for any chain and any range limit', async () => {
  const chain = fc.record({
    latest: fc.integer({ min: 0, max: 12_000 }),
    secsPerBlock: fc.constantFrom(0, 0.25, 1, 2, 12),
    /** A block before which the chain stood still, or began long ago. */
    haltAt: fc.integer({ min: 0, max: 12_000 }),
    haltSecs: fc.integer({ min: 0, max: 100_000 }),
    sinceBlock: fc.integer({ min: 0, max: 12_000 }),
    sinceSecs: fc.integer({ min: -1, max: 1 }),
    mostBlocks: fc.constantFrom(50, 75, 100, 1_000, 1_999, 100_000),
  });
  const hash = `0x${'bb'.repeat(32)}`;
  const expected = devnet.expected();
  await fc.assert(
    fc.asyncProperty(chain, async ({ latest, secsPerBlock, haltAt, haltSecs, mostBlocks, ...since }) => {
      const secsOf = (block: number) => Math.floor(block * secsPerBlock) + (block > haltAt ? haltSecs : 0);
      const sinceSecs = secsOf(since.sinceBlock) + since.sinceSecs;
      const isTaken = ({ from, to }: Range) => to - from < mostBlocks;
      const stub = await startRpcStub((request) => {
        const range = rangeOf(request);
        if (range !== undefined && !isTaken(range))
          return refuse(request, { code: -32_005, message: 'range' });
        if (range !== undefined) return succeed(request, []);
        const [at] = request.body.params;
        const block = at === 'latest' ? latest : Number(at);
        const [number, timestamp] = [block, secsOf(block)].map((value) => `0x${value.toString(16)}`);
        return succeed(request, { number, hash, timestamp });
      });
      const reader = createChain({ chainId: 84_532, rpcUrl: stub.url, timeoutMs: 20_000 });
      expect(await reader.findAuthorization(expected, sinceSecs)).toEqual({ kind: 'absent' });
      await reader.close();

      const asked = rangesOf(stub);
      const taken = asked.filter(isTaken);
      const oldest = taken.at(-1)?.from ?? -1;
      expect(taken.map(({ to }) => to)).toEqual([latest, ...taken.slice(0, -1).map(({ from }) => from - 1)]);
      expect(oldest === 0 || secsOf(oldest) < sinceSecs).toBe(true);
      expect(oldest + 1_000 >= latest || secsOf(oldest + 1_000) >= sinceSecs).toBe(true);
      expect(Math.max(...widthsOf(stub))).toBeLessThanOrEqual(2_000);
      expect(stub.requests.length - asked.length).toBeLessThan(12);
    }),
    propertyRuns(40),
  );
});

/** The same logs, each some places further on. */
function renumbered(logs: readonly object[]): readonly object[] {
  return logs.map((log, at) => ({ ...log, logIndex: `0x${(at + 7).toString(16)}` }));
}
