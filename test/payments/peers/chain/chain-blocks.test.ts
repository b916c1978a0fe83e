import { createPublicClient, http } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createChain, type Chain } from '../../../../src/payments/peers/chain/chain.ts';
import { eventually } from '../../../support/wait.ts';
import { type AuthorizationChain, startAuthorizationChain } from './authorizations.ts';
import { refuse, type RpcStub, startRpcStub, succeed } from '../../../base/peers/rpc/rpc-stub.ts';

let devnet: AuthorizationChain;
beforeAll(async () => {
  devnet = await startAuthorizationChain();
});
afterAll(async () => {
  await devnet.stop();
});

function open(rpcUrl: string): Chain {
  const chain = createChain({ chainId: 84_532, rpcUrl, timeoutMs: 20_000 });
  onTestFinished(() => chain.close());
  return chain;
}

/** What the node itself says, by another client. */
const node = () => createPublicClient({ transport: http(devnet.url) });

describe('on a real chain', () => {
  test('the finalized block trails the latest one and follows it', async () => {
    const chain = open(devnet.url);
    const finalized = async () => {
      const answer = await chain.finalizedBlock();
      if (answer.kind === 'unavailable') throw answer.error ?? new Error(answer.cause);
      return answer.block;
    };
    const first = await finalized();
    const { hash, timestamp } = await node().getBlock({ blockNumber: first.number });
    expect(first).toEqual({ number: first.number, hash, timestampSecs: Number(timestamp) });
    const latest = await node().getBlockNumber({ cacheTime: 0 });
    expect(first.number).toBeLessThan(latest);
    await eventually(async () => {
      expect((await finalized()).number).toBeGreaterThanOrEqual(latest);
    });
  });

  test('a height has the hash of its block, and none beyond the chain', async () => {
    const chain = open(devnet.url);
    const { number, hash } = await node().getBlock();
    expect(await chain.blockHashAt(number)).toEqual({ kind: 'answer', hash });
    expect(await chain.blockHashAt(0n)).toEqual({
      kind: 'answer',
      hash: (await node().getBlock({ blockNumber: 0n })).hash,
    });
    expect(await chain.blockHashAt(number + 1_000n)).toEqual({ kind: 'answer', hash: undefined });
  });

  test('an authorization is unused at the block before its use, and used at its own block', async () => {
    const chain = open(devnet.url);
    const expected = devnet.expected();
    const { blockHash, blockNumber } = await devnet.use(expected);
    const at = (hash: `0x${string}`) => chain.isUsed(expected, hash);
    const before = await node().getBlock({ blockNumber: blockNumber - 1n });
    expect(await at(before.hash)).toEqual({ kind: 'answer', used: false });
    expect(await at(blockHash)).toEqual({ kind: 'answer', used: true });
  });

  test('the use of an authorization is unavailable at an unknown block, and before the token was deployed', async () => {
    const chain = open(devnet.url);
    const expected = devnet.expected();
    const nowhere = await chain.isUsed(expected, `0x${'12'.repeat(32)}`);
    expect(nowhere).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
    const genesis = await node().getBlock({ blockNumber: 0n });
    const early = await chain.isUsed(expected, genesis.hash);
    expect(early).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });

  test('after a reorg a height has another hash, and the old block has no state', async () => {
    const chain = open(devnet.url);
    const expected = devnet.expected();
    const { blockHash, blockNumber } = await devnet.use(expected);
    expect(await chain.blockHashAt(blockNumber)).toEqual({ kind: 'answer', hash: blockHash });
    const depth = (await node().getBlockNumber({ cacheTime: 0 })) - blockNumber + 1n;
    await devnet.rpc('anvil_reorg', Number(depth), []);
    const { hash } = await node().getBlock({ blockNumber });
    expect(hash).not.toBe(blockHash);
    expect(await chain.blockHashAt(blockNumber)).toEqual({ kind: 'answer', hash });
    const stale = await chain.isUsed(expected, blockHash);
    expect(stale).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
  });
});

const header = { number: '0x10', hash: `0x${'bb'.repeat(32)}`, timestamp: '0x65', parentHash: '0x0' };

function resulting(result: unknown): Promise<RpcStub> {
  return startRpcStub((request) => succeed(request, result));
}

describe('a block', () => {
  const block = { number: 16n, hash: header.hash, timestampSecs: 101 };

  test('is requested without its transactions', async () => {
    const stub = await resulting(header);
    expect(await open(stub.url).finalizedBlock()).toEqual({ kind: 'answer', block });
    expect(await open(stub.url).blockHashAt(16n)).toEqual({ kind: 'answer', hash: header.hash });
    expect(stub.requests.map(({ body }) => [body.method, body.params])).toEqual([
      ['eth_getBlockByNumber', ['finalized', false]],
      ['eth_getBlockByNumber', ['0x10', false]],
    ]);
  });

  test('that is final is unavailable if the node has no such block, or does not support the tag', async () => {
    const none = open((await resulting(null)).url);
    expect(await none.finalizedBlock()).toEqual({ kind: 'unavailable', cause: 'no_finalized_block' });
    const old = await startRpcStub((request) => refuse(request, { code: -32_602, message: 'invalid tag' }));
    expect(await open(old.url).finalizedBlock()).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
  });

  test.each([
    ['missing', undefined],
    ['a string', '0x10'],
    ['of no number', { ...header, number: null }],
    ['of no hash', { ...header, hash: null }],
    ['of a short hash', { ...header, hash: '0xbb' }],
    ['of no time', { ...header, timestamp: undefined }],
    ['of a decimal time', { ...header, timestamp: 101 }],
    ['of a time beyond all times', { ...header, timestamp: `0x${'f'.repeat(16)}` }],
  ])('is malformed when %s', async (_, result) => {
    const chain = open((await resulting(result)).url);
    expect(await chain.finalizedBlock()).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
    expect(await chain.blockHashAt(16n)).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });

  test('of another height than requested is malformed', async () => {
    const chain = open((await resulting(header)).url);
    expect(await chain.blockHashAt(17n)).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });

  test('is read however many transactions it has', async () => {
    const transactions = Array.from({ length: 100_000 }, () => header.hash);
    const chain = open((await resulting({ transactions, ...header })).url);
    expect(await chain.finalizedBlock()).toEqual({ kind: 'answer', block });
  });

  test('with endless further fields is not read', async () => {
    const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`field${at}`, at]));
    const chain = open((await resulting({ ...header, ...fields })).url);
    expect(await chain.finalizedBlock()).toMatchObject({ kind: 'unavailable', cause: 'too_large' });
  });
});

test('a state at a block is requested by hash, which must be canonical', async () => {
  const stub = await resulting(`0x${'0'.repeat(63)}1`);
  const expected = devnet.expected();
  const blockHash = `0x${'cd'.repeat(32)}` as const;
  const chain = open(stub.url);
  expect(await chain.isUsed(expected, blockHash)).toEqual({
    kind: 'answer',
    used: true,
  });
  await chain.isUsed(expected);
  const [pinned, latest] = stub.requests.map(({ body }) => body.params);
  expect(pinned).toEqual([latest?.[0], { blockHash, requireCanonical: true }]);
  expect(latest?.[1]).toBe('latest');
});
