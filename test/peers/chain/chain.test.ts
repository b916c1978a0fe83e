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

interface Node {
  /** Of the transaction; null where the node does not know it. */
  readonly place?: object | null;
  readonly logs?: readonly object[];
}

/** A node with one transaction: it answers for its block, and with those of its logs that are asked for. */
function nodeWith({ place, logs }: Node): Promise<Chain> {
  return serve((_, response, text) => {
    const { method, params } = JSON.parse(text) as { method: string; params: [LogFilter] };
    const result = method === 'eth_getLogs' ? selected(logs ?? [], params[0]) : place;
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
  });
}

interface LogFilter {
  readonly address: readonly string[];
  readonly topics: readonly (readonly string[])[];
}

/** As a node selects logs. */
function selected(logs: readonly object[], { address, topics }: LogFilter): readonly object[] {
  return logs.filter((log) => {
    const { address: at, topics: own } = log as TestLog;
    return address.includes(at) && topics.every((of, place) => of.includes(String(own[place])));
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
  canceled: toEventSelector('AuthorizationCanceled(address,bytes32)'),
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

const block = { blockNumber: '0x10', blockHash };
const place = { hash: transaction, ...block, input: '0x00', accessList: [] };

function mined(logs: readonly TestLog[], change: object = {}): readonly object[] {
  return logs.map((log, at) => {
    const logIndex = `0x${(at + 5).toString(16)}`;
    return { ...log, logIndex, transactionHash: transaction, ...block, removed: false, ...change };
  });
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
    const chain = await nodeWith({ place, logs: mined(logs) });
    expect(await chain.findSettlement(transaction, expected)).toEqual(answer);
  });
});

describe('a transaction is', () => {
  test.each([
    ['unknown to the node', null],
    ['in no block', { ...place, blockHash: null, blockNumber: null }],
    ['in no block, as some nodes say it', { hash: transaction, input: '0x00' }],
    ['in a block that is not sealed yet', { ...place, blockHash: abiFalse }],
  ])('absent when it is %s', async (_, result) => {
    const chain = await nodeWith({ place: result });
    expect(await chain.findSettlement(transaction, expected)).toEqual({ kind: 'absent' });
  });

  test('contradicted when it reverted, since it has no logs then', async () => {
    const chain = await nodeWith({ place });
    expect(await chain.findSettlement(transaction, expected)).toEqual(noUse);
  });

  test('found whatever letter case the node uses', async () => {
    const shout = (text: object): object =>
      JSON.parse(
        JSON.stringify(text).replaceAll(/0x[0-9a-f]{40,}/g, (hex) => `0x${hex.slice(2).toUpperCase()}`),
      ) as object;
    const chain = await serve((_, response, text) => {
      const result = shout(text.includes('eth_getLogs') ? mined(plain) : place);
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('found among the logs of its block, however many other transactions of the payer it has', async () => {
    const others = mined([...plain, used({ of: otherNonce })], { transactionHash: otherNonce });
    const chain = await nodeWith({ place, logs: [...others, ...mined(plain)] });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('found whatever the length of its input, its access list and the logs around it', async () => {
    const long = { ...place, input: `0x${'ab'.repeat(2 * 1024 * 1024)}`, accessList: plain };
    const filler = mined([sent({ to: other })], { transactionHash: otherNonce });
    const logs = [...Array.from({ length: 20_000 }, () => filler).flat(), ...mined(plain)];
    const chain = await nodeWith({ place: long, logs });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('looked up in two requests: for its block, and for the logs of its payer in that block', async () => {
    const requests: unknown[] = [];
    const chain = await serve((_, response, text) => {
      const { method, params } = JSON.parse(text) as { method: string; params: unknown[] };
      requests.push([method, params]);
      const result = method === 'eth_getLogs' ? mined(plain) : place;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    await chain.findSettlement(transaction, expected);
    const events = [topics.use, topics.canceled, topics.transfer];
    expect(requests).toEqual([
      ['eth_getTransactionByHash', [transaction]],
      ['eth_getLogs', [{ address: [asset], topics: [events, [word(from)]], blockHash }]],
    ]);
  });
});

describe('an answer about a transaction is malformed', () => {
  const change = (log: object) => ({ place, logs: [{ ...mined(plain)[0], ...log }] });
  const placed = (changed: object) => ({ place: { ...place, ...changed } });
  test.each<[string, { readonly place: unknown; readonly logs?: unknown }]>([
    ['missing', { place: undefined }],
    ['a string', { place: 'transaction' }],
    ['of another transaction', placed({ hash: blockHash })],
    ['with a decimal block number', placed({ blockNumber: 16 })],
    ['with an endless block number', placed({ blockNumber: `0x${'1'.repeat(17)}` })],
    ['with a short block hash', placed({ blockHash: '0x12' })],
    ['with a null log', { place, logs: [null] }],
    ['with a log that is a text', { place, logs: ['log'] }],
    ['with a log that is a list', { place, logs: [[]] }],
    ['with a short topic', change({ topics: [topics.use, '0x12'] })],
    ['with five topics', change({ topics: [topics.use, word(from), nonce, nonce, nonce] })],
    ['with data that is no hex', change({ data: '0xzz' })],
    ['with no data', change({ data: null })],
    ['with a removed log', change({ removed: true })],
    ['with a log of another block', change({ blockHash: transaction })],
    ['with a log of no block', change({ blockHash: null, blockNumber: null })],
    ['with no list of logs', { place, logs: null }],
    ['with logs in an object', { place, logs: { logs: [] } }],
    ['with a log of another contract', change({ address: other })],
    ['with a log of another payer', change({ topics: [topics.use, word(other), nonce] })],
    ['with a log of another event', change({ topics: [abiTrue, word(from), nonce] })],
  ])('when it is %s', async (_, node) => {
    const chain = await serve((_request, response, text) => {
      const result = text.includes('eth_getLogs') ? node.logs : node.place;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    const answer = await chain.findSettlement(transaction, expected);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });

  test('when one place in the block has two logs, the node contradicts itself', async () => {
    const chain = await nodeWith({ place, logs: mined(plain, { logIndex: '0x5' }) });
    expect(await chain.findSettlement(transaction, expected)).toMatchObject({
      kind: 'unavailable',
      cause: 'inconsistent',
    });
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
  /** A node that sees the transaction only after some requests. */
  function seeing(logs: readonly object[], ...before: readonly unknown[]): Promise<Chain> {
    let looks = 0;
    return serve((_, response, text) => {
      const isLogs = text.includes('eth_getLogs');
      const early = isLogs ? undefined : before[looks++];
      const result = early === undefined ? (isLogs ? logs : place) : early;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
  }

  test('continues through absence and failures until the payment is found', async () => {
    const chain = await seeing(mined(plain), null, 'nonsense');
    expect(await chain.waitForSettlement(transaction, expected, 60_000)).toEqual(paidAt(6));
  });

  test('ends at once on a contradiction', async () => {
    const chain = await seeing([], null);
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
