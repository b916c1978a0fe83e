import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listening } from '../../../support/listening.ts';

/** One JSON-RPC request that reached the stub, to be answered, or not. */
export interface RpcRequest {
  readonly url: string | undefined;
  readonly body: { readonly method: string; readonly params: readonly unknown[]; readonly id: unknown };
  readonly response: ServerResponse;
}

/** What it returns is not waited for. */
export type Answering = (request: RpcRequest, index: number) => unknown;

export interface RpcStub {
  readonly url: string;
  /** All that were asked, in their order. */
  readonly requests: readonly RpcRequest[];
  /** Resolves when as many requests have come in since the start; one that never comes runs into the time-out. */
  arrived(count: number): Promise<void>;
}

/** A node that answers with the given results until the test ends. What chain it is it says by itself, unless `chainId` is null. */
export async function startRpcStub(answer: Answering, chainId: string | null = '0x14a34'): Promise<RpcStub> {
  const requests: RpcRequest[] = [];
  const watchers = new Set<() => void>();
  const take = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = Buffer.concat(await incoming.toArray()).toString();
    const request = { url: incoming.url, body: JSON.parse(text) as RpcRequest['body'], response };
    if (chainId !== null && request.body.method === 'eth_chainId') return succeed(request, chainId);
    requests.push(request);
    for (const watch of watchers) watch();
    answer(request, requests.length - 1);
  };
  const server = createServer((incoming, response) => void take(incoming, response));
  const at = await listening(server);
  return {
    url: `${at}/v2/key?a=b`,
    requests,
    arrived: (count) =>
      new Promise((resolve) => {
        const watch = (): void => {
          if (requests.length < count) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
  };
}

/** Gives a result, as a node does. */
export function succeed({ response }: RpcRequest, result: unknown): void {
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
}

/** Refuses, as a node does. */
export function refuse({ response }: RpcRequest, error: unknown): void {
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
}

export const reverts: readonly (readonly [string, object])[] = [
  ['geth', { code: 3, message: 'execution reverted: nope', data: `0x08c379a0${'00'.repeat(64)}` }],
  ['geth before code 3', { code: -32_000, message: 'execution reverted' }],
  ['anvil', { code: 3, message: 'execution reverted', data: '0x' }],
  ['Nethermind', { code: -32_015, message: 'VM execution error.', data: 'revert: nope' }],
  ['Besu', { code: -32_000, message: 'Execution reverted', data: '0x' }],
  ['Ganache', { code: -32_000, message: 'VM Exception while processing transaction: revert' }],
];

export const halts: readonly (readonly [string, object])[] = [
  ['geth, out of gas', { code: -32_000, message: 'out of gas' }],
  ['reth, out of gas', { code: -32_003, message: 'out of gas: gas required exceeds: 500000' }],
  ['anvil, out of gas', { code: -32_603, message: 'EVM error OutOfGas' }],
  ['anvil, out of memory', { code: -32_603, message: 'EVM error MemoryOOG' }],
  [
    'anvil, a signature too long for the gas',
    { code: -32_000, message: 'intrinsic gas too high -- CallGasCostMoreThanGasLimit' },
  ],
  ['geth, a signature too long for the gas', { code: -32_000, message: 'err: intrinsic gas too low' }],
  ['geth, bad code', { code: -32_000, message: 'invalid opcode: INVALID' }],
  ['geth, bad jump', { code: -32_000, message: 'invalid jump destination' }],
];

/** Errors that tell nothing about the contract. */
export const nodeErrors: readonly (readonly [string, object])[] = [
  ['a limit', { code: -32_005, message: 'daily request count exceeded, request rate limited' }],
  ['another limit', { code: 429, message: 'Your app has exceeded its compute units per second capacity' }],
  ['a lagging node', { code: -32_000, message: 'header not found' }],
  ['a node without state', { code: -32_000, message: 'missing trie node 0x12 (path )' }],
  ['its own time-out', { code: -32_000, message: 'execution aborted (timeout = 5s)' }],
  ['an unknown method', { code: -32_601, message: 'the method eth_call does not exist' }],
  ['an internal error', { code: -32_603, message: 'Internal error' }],
];
