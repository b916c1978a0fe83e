import {
  encodeDeployData,
  encodeFunctionData,
  erc6492SignatureValidatorAbi,
  erc6492SignatureValidatorByteCode,
  parseAbi,
} from 'viem';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createContractSignatureChecker,
  type ContractSignatureCheckerOptions,
} from '../../../../src/base/peers/rpc/contract-signature.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import {
  type Answering,
  halts,
  nodeErrors,
  refuse,
  reverts,
  startRpcStub,
  succeed,
  type RpcRequest,
} from './rpc-stub.ts';

const account = `0x${'ac'.repeat(20)}` as const;
const digest = `0x${'d1'.repeat(32)}` as const;
const magic = `0x1626ba7e${'0'.repeat(56)}`;
const valid = { kind: 'answer', valid: true, isContract: true };
const invalid = { kind: 'answer', valid: false, isContract: true };

function checker(options: ContractSignatureCheckerOptions = {}) {
  const created = createContractSignatureChecker(options);
  onTestFinished(() => created.close());
  return created;
}

/** A node with a contract at every address, whose calls are answered so. */
function contractAnswering(answer: Answering) {
  return startRpcStub((request, index) =>
    request.body.method === 'eth_getCode' ? succeed(request, '0x60806040') : answer(request, index),
  );
}

function ask(rpcUrl: string, signature: Hex = `0x${'51'.repeat(65)}`, options = {}) {
  return checker(options).isValidSignature({ rpcUrl, account, digest, signature });
}

test.each([0, 1, 32, 65, 96, 1_000])(
  'a signature of %i bytes is sent to the contract with a gas cap',
  async (length) => {
    const stub = await contractAnswering((request) => succeed(request, magic));
    const signature: Hex = `0x${'5a'.repeat(length)}`;
    expect(await ask(stub.url, signature)).toEqual(valid);
    const abi = parseAbi(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
    const data = encodeFunctionData({ abi, args: [digest, signature] });
    expect(stub.requests.map(({ body }) => [body.method, body.params])).toEqual([
      ['eth_getCode', [account, 'latest']],
      ['eth_call', [{ to: account, data, gas: '0x7a120' }, 'latest']],
    ]);
  },
);

test('an account without code is not called', async () => {
  const stub = await startRpcStub((request) => succeed(request, '0x'));
  expect(await ask(stub.url)).toEqual({ kind: 'answer', valid: false, isContract: false });
  expect(stub.requests).toHaveLength(1);
});

describe('the answer of a contract', () => {
  test.each([
    ['yes', magic, valid],
    ['yes in upper case', magic.toUpperCase().replace('0X', '0x'), valid],
    ['no', `0x${'f'.repeat(8)}${'0'.repeat(56)}`, invalid],
    ['zero', `0x${'0'.repeat(64)}`, invalid],
    ['true', `0x${'0'.repeat(63)}1`, invalid],
    ['the magic value at the wrong end', `0x${'0'.repeat(56)}1626ba7e`, invalid],
    ['the magic value and more', `0x1626ba7e${'0'.repeat(55)}1`, invalid],
    ['the magic value alone', '0x1626ba7e', invalid],
    ['two words', `${magic}${'0'.repeat(64)}`, invalid],
    ['nothing', '0x', invalid],
  ])('%s', async (_, result, answer) => {
    const stub = await contractAnswering((request) => succeed(request, result));
    expect(await ask(stub.url)).toEqual(answer);
  });

  test.each([...reverts, ...halts])('is invalid when it fails with: %s', async (_, error) => {
    const stub = await contractAnswering((request) => refuse(request, error));
    expect(await ask(stub.url)).toEqual(invalid);
    expect(stub.requests).toHaveLength(2);
  });
});

describe('the answer is unavailable when', () => {
  test.each(nodeErrors)('the node answers the call with %s', async (_, error) => {
    const stub = await contractAnswering((request) => refuse(request, error));
    expect(await ask(stub.url)).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
    expect(stub.requests).toHaveLength(2);
  });

  test.each<[string, (request: RpcRequest) => unknown, string]>([
    ['no hexadecimal', (request) => succeed(request, '0xyz'), 'malformed'],
    ['half a byte', (request) => succeed(request, '0x1'), 'malformed'],
    ['null', (request) => succeed(request, null), 'malformed'],
    ['a huge body', ({ response }) => response.end('x'.repeat(1024 * 1024 + 1)), 'too_large'],
    ['a bad status', ({ response }) => response.writeHead(500).end(), 'status_500'],
  ])('the node answers with %s, to the first call or the second', async (_, answer, cause) => {
    const first = await startRpcStub(answer);
    expect(await ask(first.url)).toMatchObject({ kind: 'unavailable', cause });
    expect(first.requests).toHaveLength(1);
    const second = await contractAnswering(answer);
    expect(await ask(second.url)).toMatchObject({ kind: 'unavailable', cause });
    expect(second.requests).toHaveLength(2);
  });

  test('the node hangs', async () => {
    const stub = await contractAnswering(() => undefined);
    const deadlines = holdDeadlines();
    const answer = ask(stub.url, undefined, { timeoutMs: 120_000 });
    for (const asked of [2, 3]) {
      await stub.arrived(asked);
      // the question has its own time limit, and no more than is left of it
      const [limitMs, ...others] = await deadlines.end();
      expect(others).toEqual([]);
      expect(limitMs).toBeLessThanOrEqual(120_000);
    }
    expect(await answer).toMatchObject({ kind: 'unavailable', cause: 'timeout' });
    expect(stub.requests).toHaveLength(3);
  });
});

test('a broken connection is retried once', async () => {
  const stub = await contractAnswering((request, index) =>
    index === 1 ? request.response.destroy() : succeed(request, magic),
  );
  expect(await ask(stub.url)).toEqual(valid);
  expect(stub.requests).toHaveLength(3);
});

describe('a signature wrapped for an account that is not deployed yet', () => {
  const signature: Hex = `0x${'6492'.repeat(100)}`;
  const askWrapped = (rpcUrl: string) => checker().isValidWrapped({ rpcUrl, account, digest, signature });

  test("is judged by the reference validator's code, without a sender, with a gas cap", async () => {
    const stub = await startRpcStub((request) => succeed(request, '0x01'));
    expect(await askWrapped(stub.url)).toEqual({ kind: 'answer', valid: true });
    const data = encodeDeployData({
      abi: erc6492SignatureValidatorAbi,
      bytecode: erc6492SignatureValidatorByteCode,
      args: [account, digest, signature],
    });
    expect(stub.requests.map(({ body }) => [body.method, body.params])).toEqual([
      ['eth_call', [{ data, gas: '0x2dc6c0' }, 'latest']],
    ]);
  });

  test.each([...reverts, ...halts])('is invalid when the call fails with: %s', async (_, error) => {
    const stub = await startRpcStub((request) => refuse(request, error));
    expect(await askWrapped(stub.url)).toEqual({ kind: 'answer', valid: false });
  });

  test('is invalid when the validator says no, and when it fails with more than an answer may have', async () => {
    const no = await startRpcStub((request) => succeed(request, '0x00'));
    expect(await askWrapped(no.url)).toEqual({ kind: 'answer', valid: false });
    const error = { code: 3, message: 'execution reverted', data: `0x${'00'.repeat(1024 * 1024)}` };
    const long = await startRpcStub((request) => refuse(request, error));
    expect(await askWrapped(long.url)).toEqual({ kind: 'answer', valid: false });
  });

  test.each(nodeErrors)('is not judged when the node answers with %s', async (_, error) => {
    const stub = await startRpcStub((request) => refuse(request, error));
    expect(await askWrapped(stub.url)).toMatchObject({ kind: 'unavailable', cause: 'rpc_error' });
  });

  test.each<[string, unknown, string]>([
    ['nothing, as of an account that is called', '0x', 'malformed'],
    ['a word', `0x${'0'.repeat(63)}1`, 'malformed'],
    ['another byte', '0x02', 'malformed'],
    ['half a byte', '0x1', 'malformed'],
    ['null', null, 'malformed'],
  ])('is not judged when the node answers with %s', async (_, result, cause) => {
    const stub = await startRpcStub((request) => succeed(request, result));
    expect(await askWrapped(stub.url)).toMatchObject({ kind: 'unavailable', cause });
  });
});

test('after close nothing is sent', async () => {
  const checking = checker();
  await checking.close();
  const question = { rpcUrl: 'http://127.0.0.1:1', account, digest, signature: '0x' } as const;
  expect(await checking.isValidSignature(question)).toEqual({ kind: 'unavailable', cause: 'closed' });
});
