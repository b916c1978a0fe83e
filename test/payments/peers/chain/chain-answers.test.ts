import { encodeFunctionData, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import type { Chain } from '../../../../src/payments/peers/chain/chain.ts';
import { soonMs } from '../../../support/time-limits.ts';
import {
  abiFalse,
  abiTrue,
  asset,
  expected,
  from,
  mined,
  nonce,
  noUse,
  paidAt,
  place,
  plain,
  serve,
  transaction,
  word,
} from './transaction-node.ts';

/** An RPC that returns these results, one per call, then repeats the last. */
function resulting(...results: readonly unknown[]): Promise<Chain> {
  let call = 0;
  return serve((_, response) => {
    const result = results[Math.min(call, results.length - 1)];
    call += 1;
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
  });
}

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
  /** What else no RPC may answer is in test/base/peers/rpc/permission.test.ts. */
  test.each([
    [
      'answers with an error',
      200,
      { ...ok, result: undefined, error: { code: -32000, message: 'no' } },
      'rpc_error',
    ],
    ['answers with another JSON-RPC version', 200, { ...ok, jsonrpc: '1.0' }, 'malformed'],
    ['limits', 429, ok, 'status_429'],
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
    const chain = await seeing(mined(plain), null, 'nonsense');
    expect(await chain.waitForSettlement(transaction, expected, 60_000)).toEqual(paidAt(6));
  });

  test('ends immediately on a contradiction', async () => {
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
