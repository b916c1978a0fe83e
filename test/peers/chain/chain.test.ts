import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { encodeFunctionData, parseAbi, toEventSelector } from 'viem';
import { afterEach, describe, expect, test } from 'vitest';
import type { ExpectedTransfer } from '../../../src/domain/payments/payment.ts';
import { createChain, type Chain } from '../../../src/peers/chain/chain.ts';
import { soonMs } from '../../support/time-limits.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Its result is not awaited. */
type Listener = (request: IncomingMessage, response: ServerResponse, text: string) => unknown;

/** An RPC with this listener. Unless `hidesId`, it answers `eth_chainId` by itself. */
async function serve(listener: Listener, timeoutMs = 20_000, hidesId = false): Promise<Chain> {
  const take: Listener = async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString('utf8');
    if (hidesId || !text.includes('eth_chainId')) return listener(request, response, text);
    return response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x14a34' }));
  };
  const server = createServer((request, response) => void take(request, response, '')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close().closeAllConnections());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const rpcUrl = `http://127.0.0.1:${port}/v2/key?a=b`;
  const chain = createChain({ chainId: 84532, rpcUrl, timeoutMs });
  cleanups.push(() => chain.close());
  return chain;
}

/** An RPC that returns these results, one per call, then repeats the last. */
function resulting(...results: readonly unknown[]): Promise<Chain> {
  let call = 0;
  return serve((_, response) => {
    const result = results[Math.min(call, results.length - 1)];
    call += 1;
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
  });
}

const asset = `0x${'a5'.repeat(20)}` as const;
const other = `0x${'0e'.repeat(20)}` as const;
const from = `0x${'f0'.repeat(20)}` as const;
const payTo = `0x${'9a'.repeat(20)}` as const;
const nonce = `0x${'4e'.repeat(32)}` as const;
const otherNonce = `0x${'4f'.repeat(32)}` as const;
const transaction = `0x${'77'.repeat(32)}` as const;
const blockHash = `0x${'bb'.repeat(32)}` as const;
const expected: ExpectedTransfer = {
  transferMethod: 'eip3009',
  asset,
  from,
  payTo,
  value: 1_000_000n,
  nonce,
};

const abiFalse = `0x${'0'.repeat(64)}`;
const abiTrue = `0x${'0'.repeat(63)}1`;
const word = (text: string): string => `0x${text.replace('0x', '').padStart(64, '0')}`;
const topics = {
  use: toEventSelector('AuthorizationUsed(address,bytes32)'),
  transfer: toEventSelector('Transfer(address,address,uint256)'),
};

interface TestLog {
  readonly address: string;
  readonly topics: readonly unknown[];
  readonly data: unknown;
}

function used({
  by = from,
  of = nonce,
  at = asset,
}: { by?: string; of?: string; at?: string } = {}): TestLog {
  return { address: at, topics: [topics.use, word(by), of], data: '0x' };
}

interface Sent {
  readonly by?: string;
  readonly to?: string;
  readonly value?: bigint;
  readonly at?: string;
}

function sent({ by = from, to = payTo, value = expected.value, at = asset }: Sent = {}): TestLog {
  return {
    address: at,
    topics: [topics.transfer, word(by), word(to)],
    data: word(value.toString(16)),
  };
}

function mined(logs: readonly TestLog[]): readonly object[] {
  return logs.map((log, at) => {
    const logIndex = `0x${(at + 5).toString(16)}`;
    return { ...log, logIndex, transactionHash: transaction, blockHash, removed: false };
  });
}

function receipt(logs: readonly TestLog[], change: object = {}): object {
  const block = { blockNumber: '0x10', blockHash };
  return {
    transactionHash: transaction,
    status: '0x1',
    ...block,
    gasUsed: '0x5208',
    logs: mined(logs),
    ...change,
  };
}

const paidAt = (logIndex: number): object => ({
  kind: 'paid',
  blockNumber: 16n,
  blockHash,
  logIndex,
});
const contradicted = (why: string): object => ({ kind: 'contradicted', why, blockNumber: 16n, blockHash });
const noTransfer = contradicted('no_transfer');
const noUse = contradicted('no_authorization_used');
const plain = [used(), sent()];

describe('a settlement is', () => {
  const filler = { address: other, topics: [], data: '0x00' };
  const elsewhere = sent({ to: other });
  const second = used({ of: otherNonce });
  const stranger = [used({ by: other }), sent({ by: other })] as const;

  test.each([
    ['paid by the transfer after its authorization', plain, paidAt(6)],
    ['paid among logs of other contracts', [filler, used(), filler, sent(), filler], paidAt(8)],
    ['paid in a token that emits Transfer first', [sent(), used()], paidAt(5)],
    ['paid second of two authorizations', [...stranger, used(), sent()], paidAt(8)],
    ['paid first of two authorizations', [used(), sent(), ...stranger], paidAt(6)],
    ['paid once of two equal payments, as the first', [used(), sent(), second, sent()], paidAt(6)],
    ['paid once of two equal payments, as the second', [second, sent(), used(), sent()], paidAt(8)],
    [
      'paid once of two equal payments, Transfer first, as the first',
      [sent(), used(), sent(), second],
      paidAt(5),
    ],
    [
      'paid once of two equal payments, Transfer first, as the second',
      [sent(), second, sent(), used()],
      paidAt(7),
    ],
    ['paid after a plain transfer of the payer', [sent({ to: other }), used(), sent()], paidAt(7)],
    ['paid behind a fee of the token', [used(), sent({ to: other, value: 3n }), sent()], paidAt(7)],
    [
      'paid behind a fee of a token that emits Transfer first',
      [sent(), sent({ to: other }), used()],
      paidAt(5),
    ],
    ['paid with the swap that funded it', [sent({ by: other, to: from }), used(), sent()], paidAt(7)],
    [
      'not paid by the transfer of another authorization before',
      [second, sent(), used(), elsewhere],
      noTransfer,
    ],
    [
      'not paid by the transfer of another authorization after',
      [used(), elsewhere, second, sent()],
      noTransfer,
    ],
    [
      'not paid by the transfer of another authorization, Transfer first',
      [sent(), second, elsewhere, used()],
      noTransfer,
    ],
    ['not paid by another value', [used(), sent({ value: 999_999n })], noTransfer],
    ['not paid by a larger value', [used(), sent({ value: 1_000_001n })], noTransfer],
    ['not paid to another payee', [used(), elsewhere], noTransfer],
    ['not paid by another payer', [used(), sent({ by: other })], noTransfer],
    ['not paid in another asset', [used(), sent({ at: other })], noTransfer],
    [
      'not paid by an ERC-721 Transfer',
      [used(), { ...sent(), topics: [...sent().topics, word('1')] }],
      noTransfer,
    ],
    ['not paid by a Transfer without data', [used(), { ...sent(), data: '0x' }], noTransfer],
    ['not paid without a transfer', [used()], noTransfer],
    ['not of another nonce', [second, sent()], noUse],
    ['not of another payer', [used({ by: other }), sent()], noUse],
    ['not of another asset', [used({ at: other }), sent()], noUse],
    [
      'not of a nonce that is not indexed',
      [{ ...used(), topics: used().topics.slice(0, 2), data: nonce }, sent()],
      noUse,
    ],
    ['not of a transfer alone', [sent()], noUse],
    ['not of nothing', [], noUse],
  ])('%s', async (_, logs, answer) => {
    const chain = await resulting(receipt(logs));
    expect(await chain.findSettlement(transaction, expected)).toEqual(answer);
  });
});

describe('a transaction is', () => {
  test('contradicted when it reverted', async () => {
    const chain = await resulting(receipt(plain, { status: '0x0' }));
    expect(await chain.findSettlement(transaction, expected)).toEqual(contradicted('reverted'));
  });

  test.each([
    ['no receipt', null],
    ['a receipt of no block', receipt([], { blockHash: null, blockNumber: null })],
    ['a receipt of a block not sealed yet', receipt([], { blockHash: abiFalse })],
  ])('absent with %s', async (_, result) => {
    expect(await (await resulting(result)).findSettlement(transaction, expected)).toEqual({
      kind: 'absent',
    });
  });

  test('found whatever letter case the node uses', async () => {
    const shout = JSON.stringify(receipt(plain)).replaceAll(
      /0x[0-9a-f]{40,}/g,
      (hex) => `0x${hex.slice(2).toUpperCase()}`,
    );
    const chain = await resulting(JSON.parse(shout) as unknown);
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });
});

describe('a receipt is malformed', () => {
  const change = (log: object): object => receipt([{ ...used(), ...log }, sent()]);
  const stray = (log: object): object =>
    receipt([], { logs: mined(plain).map((each) => ({ ...each, ...log })) });
  test.each([
    ['missing', undefined],
    ['a string', 'receipt'],
    ['without logs', receipt([], { logs: undefined })],
    ['with null logs', receipt([], { logs: null })],
    ['with a null log', receipt([], { logs: [null] })],
    ['without status', receipt(plain, { status: undefined })],
    ['with a status of its own', receipt(plain, { status: '0x2' })],
    ['with a decimal block number', receipt(plain, { blockNumber: 16 })],
    ['with an endless block number', receipt(plain, { blockNumber: `0x${'1'.repeat(17)}` })],
    ['with a short block hash', receipt(plain, { blockHash: '0x12' })],
    ['of another transaction', receipt(plain, { transactionHash: blockHash })],
    ['with a short topic', change({ topics: ['0x12'] })],
    ['with five topics', change({ topics: Array.from({ length: 5 }, () => topics.use) })],
    ['with a topic that is no hex', change({ topics: [`0x${'g'.repeat(64)}`] })],
    ['with data that is no hex', change({ data: '0xzz' })],
    ['with no data', change({ data: null })],
    ['with an address that is none', change({ address: '0x12' })],
    ['with a removed log', stray({ removed: true })],
    ['with a log of another transaction', stray({ transactionHash: blockHash })],
    ['with a log of another block', stray({ blockHash: transaction })],
    ['with one index twice', stray({ logIndex: '0x5' })],
  ])('%s', async (_, result) => {
    const answer = await (await resulting(result)).findSettlement(transaction, expected);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });
});

describe('whether an authorization is used', () => {
  test('is read from the token at the latest block, on the path of the URL', async () => {
    const requests: unknown[] = [];
    const chain = await serve((request, response, text) => {
      requests.push(request.url, JSON.parse(text));
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: abiTrue, error: null }));
    });
    expect(await chain.isUsed(expected)).toEqual({
      kind: 'answer',
      used: true,
    });
    const abi = parseAbi(['function authorizationState(address, bytes32) view returns (bool)']);
    const data = encodeFunctionData({ abi, args: [from, nonce] });
    const params = [{ to: asset, data }, 'latest'];
    expect(requests).toEqual(['/v2/key?a=b', { jsonrpc: '2.0', id: 1, method: 'eth_call', params }]);
  });

  test('is false for an ABI word of zero', async () => {
    const chain = await resulting(abiFalse);
    expect(await chain.isUsed(expected)).toEqual({
      kind: 'answer',
      used: false,
    });
  });

  test.each(['0x', '0x1', word('2'), `${abiTrue}00`, null, true, undefined])(
    'is unavailable on %j',
    async (result) => {
      const answer = await (await resulting(result)).isUsed(expected);
      expect(answer).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
    },
  );
});

describe('the chain id', () => {
  test.each([
    ['0x14a34', true],
    ['0x1', false],
  ])('%s', async (result, matches) => {
    const chain = await serve(
      (_, response) => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result })),
      2_000,
      true,
    );
    expect(await chain.checkChainId()).toEqual({ kind: 'answer', matches });
    const state = await chain.isUsed(expected);
    expect(state).toMatchObject({ kind: 'unavailable', cause: matches ? 'malformed' : 'wrong_chain' });
  });
});

describe('an RPC is unavailable when it', () => {
  const ok = { jsonrpc: '2.0', id: 1, result: '0x14a34' };
  test.each([
    [
      'answers with an error',
      200,
      { jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'no' } },
      'rpc_error',
    ],
    [
      'cannot read the request',
      200,
      { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'no' } },
      'rpc_error',
    ],
    ['errs in its own way', 200, { jsonrpc: '2.0', id: 1, error: 'no' }, 'malformed'],
    ['answers another call', 200, { ...ok, id: 2 }, 'malformed'],
    ['answers no call', 200, { jsonrpc: '2.0', result: '0x14a34' }, 'malformed'],
    ['answers with another JSON-RPC version', 200, { ...ok, jsonrpc: '1.0' }, 'malformed'],
    ['answers a batch', 200, [ok], 'malformed'],
    ['limits', 429, ok, 'status_429'],
    ['redirects', 302, ok, 'status_302'],
    ['shows a page', 200, '<html>', 'malformed'],
    ['is too long', 200, { ...ok, padding: 'x'.repeat(65_536) }, 'too_large'],
  ])('%s', async (_, status, answer, cause) => {
    const chain = await serve(
      (_request, response) => response.writeHead(status).end(JSON.stringify(answer)),
      2_000,
      true,
    );
    expect(await chain.checkChainId()).toMatchObject({ kind: 'unavailable', cause });
  });

  test('hangs or hangs up', async () => {
    const hanging = await serve(() => undefined, 30);
    expect(await hanging.findSettlement(transaction, expected)).toMatchObject({
      kind: 'unavailable',
      cause: 'timeout',
    });
    const closing = await serve((request) => request.socket.destroy(), 20_000, true);
    expect(await closing.checkChainId()).toMatchObject({
      kind: 'unavailable',
      cause: 'connection',
    });
  });
});

describe('waiting for a settlement', () => {
  test('continues through absence and failures until the payment is found', async () => {
    const chain = await resulting(null, 'nonsense', receipt(plain));
    expect(await chain.waitForSettlement(transaction, expected, 60_000)).toEqual(paidAt(6));
  });

  test('ends at once on a contradiction', async () => {
    const chain = await resulting(null, receipt([]), receipt(plain));
    expect(await chain.waitForSettlement(transaction, expected, 60_000)).toEqual(noUse);
  });

  test('ends after its time-out with the last answer', async () => {
    const chain = await resulting(null);
    const startMs = performance.now();
    const { kind } = await chain.waitForSettlement(transaction, expected, 500);
    // the last question gets the time that is left, which may be too little for an answer
    expect(kind).toMatch(/^(absent|unavailable)$/);
    expect(performance.now() - startMs).toBeLessThan(soonMs(500));
  });

  test('does not exceed its time-out when the RPC hangs', async () => {
    const chain = await serve(() => undefined, 600_000);
    const answer = await chain.waitForSettlement(transaction, expected, 40);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'timeout' });
  });

  test('ends when the chain is closed', async () => {
    const chain = await resulting(null);
    const waiting = chain.waitForSettlement(transaction, expected, 600_000);
    await chain.findSettlement(transaction, expected);
    await chain.close();
    expect(await waiting).toMatchObject({ kind: 'unavailable', cause: 'closed' });
  });
});
