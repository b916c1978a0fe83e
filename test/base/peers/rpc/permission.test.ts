import { encodeFunctionData, parseAbi } from 'viem';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createPermissionChecker,
  type PermissionCheckerOptions,
  type PermissionQuestion,
} from '../../../../src/base/peers/rpc/permission.ts';
import { until } from '../../../devnet/killable.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { halts, nodeErrors, refuse, reverts, startRpcStub, succeed, type RpcRequest } from './rpc-stub.ts';

const contract = `0x${'c0'.repeat(20)}` as const;
const caller = `0x${'ca'.repeat(20)}` as const;
const no = `0x${'0'.repeat(64)}`;
const yes = `0x${'0'.repeat(63)}1`;
const permitted = { kind: 'answer', permitted: true };
const refused = { kind: 'answer', permitted: false };

function checker(options: PermissionCheckerOptions = {}) {
  const created = createPermissionChecker(options);
  onTestFinished(() => created.close());
  return created;
}

function asking(rpcUrl: string, change: Partial<PermissionQuestion> = {}): PermissionQuestion {
  return { rpcUrl, contract, serviceIdType: 'uint64', serviceId: 7, caller, ...change };
}

function callerNumber(index: number): PermissionQuestion['caller'] {
  return `0x${index.toString(16).padStart(40, '0')}`;
}

/** Whether a request is `asking` without a change. */
function isPlain({ url, body }: RpcRequest): boolean {
  const [call] = body.params as [{ to: string; data: string }];
  const words = `7${caller.slice(2).padStart(64, '0')}`;
  return url === '/v2/key?a=b' && call.to === contract && call.data.endsWith(words);
}

/** A node that changes its mind with every call. */
const alternating = () => startRpcStub((request, index) => succeed(request, index % 2 === 0 ? yes : no));

/** With connections and its own line. */
async function roundTrip(rpcUrl: string): Promise<void> {
  expect(await checker().isPermitted(asking(rpcUrl))).toEqual(permitted);
}

/** What a new checker says of a node that answers so. */
async function judged(answer: (request: RpcRequest) => unknown): Promise<unknown> {
  const stub = await startRpcStub(answer);
  const verdict = await checker().isPermitted(asking(stub.url));
  // None of it is a lost connection, so none of it is asked again.
  expect(stub.requests).toHaveLength(1);
  return verdict;
}

test('an RPC of another chain than the one that is named gives no answer, and the chain is asked for once', async () => {
  const stub = await startRpcStub(
    (request) => succeed(request, request.body.method === 'eth_chainId' ? '0x2105' : yes),
    null,
  );
  const permission = checker();
  const unavailable = { kind: 'unavailable', cause: 'wrong_chain' };
  expect(await permission.isPermitted(asking(stub.url, { chainId: 1 }))).toEqual(unavailable);
  expect(await permission.isPermitted(asking(stub.url, { chainId: 8453 }))).toEqual(permitted);
  expect(await permission.isPermitted(asking(stub.url, { chainId: 8453 }))).toEqual(permitted);
  const methods = stub.requests.map(({ body }) => body.method);
  expect(methods).toEqual(['eth_chainId', 'eth_chainId', 'eth_call', 'eth_call']);
});

test('the contract is called at the latest block, on the path of the URL', async () => {
  const stub = await startRpcStub((request) => succeed(request, yes));
  const serviceId = Number.MAX_SAFE_INTEGER;
  expect(await checker().isPermitted(asking(stub.url, { serviceId }))).toEqual(permitted);
  const abi = parseAbi(['function isPermittedCaller(uint64, address) view returns (bool)']);
  const data = encodeFunctionData({ abi, args: [BigInt(serviceId), caller] });
  expect(stub.requests.map(({ url, body }) => ({ url, body }))).toEqual([
    {
      url: '/v2/key?a=b',
      body: { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: contract, data }, 'latest'] },
    },
  ]);
});

test('a contract that takes the service as uint256 is asked by its own function', async () => {
  const stub = await startRpcStub((request) => succeed(request, yes));
  expect(await checker().isPermitted(asking(stub.url, { serviceIdType: 'uint256' }))).toEqual(permitted);
  const abi = parseAbi(['function isPermittedCaller(uint256, address) view returns (bool)']);
  const data = encodeFunctionData({ abi, args: [7n, caller] });
  expect(stub.requests[0]?.body.params).toEqual([{ to: contract, data }, 'latest']);
});

test('an ABI word of zero means not permitted', async () => {
  expect(await judged((request) => succeed(request, no))).toEqual(refused);
});

describe('the answer is unavailable, never a refusal, when', () => {
  test.each([...reverts, ...halts])('the contract fails: %s', async (_, error) => {
    expect(await judged((request) => refuse(request, error))).toMatchObject({
      kind: 'unavailable',
      cause: 'reverted',
    });
  });

  test.each(nodeErrors)('the node answers with %s', async (_, error) => {
    expect(await judged((request) => refuse(request, error))).toMatchObject({
      kind: 'unavailable',
      cause: 'rpc_error',
    });
  });

  test.each([
    ['no contract answers', '0x', 'no_contract'],
    ['it is two words', `${yes}${no.slice(2)}`, 'malformed'],
    ['it is two', `0x${'0'.repeat(63)}2`, 'malformed'],
    ['it is minus one', `0x${'F'.repeat(64)}`, 'malformed'],
    ['the one is at the wrong end', `0x1${'0'.repeat(63)}`, 'malformed'],
    ['it is a short one', '0x1', 'malformed'],
    ['it is a byte', '0x01', 'malformed'],
    ['it has no prefix', yes.slice(2), 'malformed'],
    ['it is not a hexadecimal', `0x${'g'.repeat(64)}`, 'malformed'],
    ['it is a JSON boolean', true, 'malformed'],
    ['it is a number', 1, 'malformed'],
    ['it is null', null, 'malformed'],
    ['it is missing', undefined, 'malformed'],
  ])('the result is wrong: %s', async (_, result, cause) => {
    expect(await judged((request) => succeed(request, result))).toMatchObject({ kind: 'unavailable', cause });
  });

  const good = { jsonrpc: '2.0', id: 1, result: yes };
  test.each([
    ['is a page', 200, '<!doctype html><p>Welcome</p>', 'malformed'],
    ['is empty', 200, '', 'malformed'],
    ['is of another call', 200, JSON.stringify({ ...good, id: 2 }), 'malformed'],
    ['is of another JSON-RPC version', 200, JSON.stringify({ ...good, jsonrpc: '1.0' }), 'malformed'],
    ['errs in its own way', 200, JSON.stringify({ jsonrpc: '2.0', id: 1, error: 'no' }), 'malformed'],
    ['is of no call', 200, JSON.stringify({ ...good, id: null }), 'malformed'],
    ['is a batch', 200, JSON.stringify([good]), 'malformed'],
    ['is cut', 200, JSON.stringify(good).slice(0, -1), 'malformed'],
    ['is huge', 200, JSON.stringify({ ...good, padding: 'x'.repeat(65_536) }), 'too_large'],
    ['comes with an error', 200, JSON.stringify({ ...good, error: { code: 1, message: 'x' } }), 'rpc_error'],
    ['has a bad status', 502, JSON.stringify(good), 'status_502'],
    ['is a limit', 429, JSON.stringify(good), 'status_429'],
    ['is a redirect', 302, JSON.stringify(good), 'status_302'],
  ])('the answer %s', async (_, status, body, cause) => {
    const answer = await judged(({ response }) => response.writeHead(status).end(body));
    expect(answer).toMatchObject({ kind: 'unavailable', cause });
  });

  test('the body exceeds the size limit', async () => {
    const stub = await startRpcStub(({ response }) => {
      const more = (): unknown => response.destroyed || response.write('x'.repeat(16_384), more);
      more();
    });
    expect(await checker().isPermitted(asking(stub.url))).toMatchObject({
      kind: 'unavailable',
      cause: 'too_large',
    });
  });

  test('the node refuses connections', async () => {
    const checking = checker();
    expect(await checking.isPermitted(asking('http://127.0.0.1:1'))).toMatchObject({
      kind: 'unavailable',
      cause: 'connection',
    });
  });
});

describe('a lost call', () => {
  test('is retried once when the connection broke', async () => {
    const stub = await startRpcStub((request, index) =>
      index === 0 ? request.response.destroy() : succeed(request, no),
    );
    expect(await checker().isPermitted(asking(stub.url))).toEqual(refused);
    expect(stub.requests).toHaveLength(2);
  });

  test('is retried once when no answer arrived in time', async () => {
    const stub = await startRpcStub((request, index) => index === 1 && succeed(request, yes));
    const deadlines = holdDeadlines();
    const answer = checker({ timeoutMs: 120_000 }).isPermitted(asking(stub.url));
    await stub.arrived(1);
    await deadlines.end();
    expect(await answer).toEqual(permitted);
    expect(stub.requests).toHaveLength(2);
  });

  test.each([
    ['hangs', () => undefined, 'timeout'],
    ['hangs up', ({ response }: RpcRequest) => response.destroy(), 'connection'],
  ])('fails after one retry where the node always %s', async (_, answer, cause) => {
    const stub = await startRpcStub(answer);
    const deadlines = holdDeadlines();
    const judging = checker({ timeoutMs: 120_000 }).isPermitted(asking(stub.url));
    for (const asked of [1, 2]) {
      await stub.arrived(asked);
      if (cause !== 'timeout') continue;
      // the time limit that was given, of which the first attempt gets a part, and not the three seconds that are the default
      const [limitMs, ...others] = await deadlines.end();
      expect(others).toEqual([]);
      expect(limitMs).toBeLessThanOrEqual(120_000);
    }
    expect(await judging).toMatchObject({ kind: 'unavailable', cause });
    expect(stub.requests).toHaveLength(2);
  });
});

describe('concurrently', () => {
  test('identical requests share one call, different ones do not', async () => {
    const held: RpcRequest[] = [];
    const stub = await startRpcStub((request) => held.push(request));
    const checking = checker();
    const same = Array.from({ length: 50 }, () => checking.isPermitted(asking(stub.url)));
    const others = [
      asking(stub.url, { serviceId: 8 }),
      asking(stub.url, { caller: callerNumber(1) }),
      asking(stub.url, { contract: callerNumber(2) }),
      asking(`${stub.url}&c=d`),
    ].map((question) => checking.isPermitted(question));
    await stub.arrived(5);
    for (const request of held) succeed(request, isPlain(request) ? yes : no);
    expect(await Promise.all(same)).toEqual(same.map(() => permitted));
    expect(await Promise.all(others)).toEqual(others.map(() => refused));
    expect(stub.requests).toHaveLength(5);
  });

  test('requests that share a failed call share its failure, and the next request calls again', async () => {
    const stub = await startRpcStub((request, index) =>
      index === 0 ? request.response.writeHead(503).end() : succeed(request, yes),
    );
    const checking = checker();
    const both = [1, 2].map(() => checking.isPermitted(asking(stub.url)));
    expect(await Promise.all(both)).toMatchObject([{ cause: 'status_503' }, { cause: 'status_503' }]);
    expect(await checking.isPermitted(asking(stub.url))).toEqual(permitted);
  });

  test.each([1, 3])('at most %i calls run against one node', async (maxConcurrent) => {
    const total = 9;
    const open: RpcRequest[] = [];
    let most = 0;
    const stub = await startRpcStub((request) => {
      if (request.url === '/fence') return succeed(request, yes);
      open.push(request);
      most = Math.max(most, open.length);
    });
    const checking = checker({ maxConcurrent, timeoutMs: 30_000 });
    const answers = Array.from({ length: total }, (_, index) =>
      checking.isPermitted(asking(stub.url, { caller: callerNumber(index) })),
    );
    for (let answered = 0; answered < total; answered++) {
      await until(() => answered + open.length >= Math.min(maxConcurrent + answered, total));
      // Whatever else was sent has come in when round trips begun later are over.
      for (let trips = 0; trips < 3; trips++) await roundTrip(new URL('/fence', stub.url).href);
      const [next] = open.splice(0, 1);
      if (next !== undefined) succeed(next, yes);
    }
    expect(await Promise.all(answers)).toEqual(answers.map(() => permitted));
    expect(most).toBe(maxConcurrent);
  });

  test('a request without a free slot in time is busy, while another node has free slots', async () => {
    const hanging = await startRpcStub(() => undefined);
    const fine = await startRpcStub((request) => succeed(request, yes));
    const deadlines = holdDeadlines();
    const checking = checker({ maxConcurrent: 1, timeoutMs: 120_000 });
    const first = checking.isPermitted(asking(hanging.url));
    const second = checking.isPermitted(asking(hanging.url, { serviceId: 8 }));
    expect(await checking.isPermitted(asking(fine.url))).toEqual(permitted);
    await hanging.arrived(1);
    await deadlines.end();
    expect(await second).toMatchObject({ kind: 'unavailable', cause: 'busy' });
    await hanging.arrived(2);
    await deadlines.end();
    expect(await first).toMatchObject({ kind: 'unavailable', cause: 'timeout' });
    expect(hanging.requests).toHaveLength(2);
  });
});

describe('an answer', () => {
  test('is not reused', async () => {
    const stub = await alternating();
    const checking = checker();
    expect(await checking.isPermitted(asking(stub.url))).toEqual(permitted);
    expect(await checking.isPermitted(asking(stub.url))).toEqual(refused);
  });
});

test('close waits for running calls and refuses new ones', async () => {
  const held: RpcRequest[] = [];
  const stub = await startRpcStub((request) => held.push(request));
  const checking = checker();
  const running = checking.isPermitted(asking(stub.url));
  await stub.arrived(1);
  const closed = checking.close();
  expect(await checking.isPermitted(asking(stub.url, { serviceId: 8 }))).toMatchObject({
    kind: 'unavailable',
    cause: 'closed',
  });
  for (const request of held) succeed(request, yes);
  expect(await running).toEqual(permitted);
  await closed;
});
