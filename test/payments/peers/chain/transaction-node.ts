import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { toEventSelector } from 'viem';
import { onTestFinished } from 'vitest';
import type { ExpectedTransfer } from '../../../../src/payments/rules/payment.ts';
import { createChain, type Chain } from '../../../../src/payments/peers/chain/chain.ts';
import { listening } from '../../../support/listening.ts';

/** Its result is not awaited. */
type Listener = (request: IncomingMessage, response: ServerResponse, text: string) => unknown;

/** An RPC with this listener. Unless `hidesId`, it answers `eth_chainId` by itself. */
export async function serve(listener: Listener, timeoutMs = 20_000, hidesId = false): Promise<Chain> {
  const take: Listener = async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString('utf8');
    if (hidesId || !text.includes('eth_chainId')) return listener(request, response, text);
    return response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x14a34' }));
  };
  const server = createServer((request, response) => void take(request, response, ''));
  const at = await listening(server);
  const rpcUrl = `${at}/v2/key?a=b`;
  const chain = createChain({ chainId: 84532, rpcUrl, timeoutMs });
  onTestFinished(() => chain.close());
  return chain;
}

export interface Node {
  /** Of the transaction; null if the node does not know it. */
  readonly place?: object | null;
  readonly logs?: readonly object[];
}

/** A node with one transaction: it answers for its block, and with those of its logs that are asked for. */
export function nodeWith({ place, logs }: Node): Promise<Chain> {
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

export const asset = `0x${'a5'.repeat(20)}` as const;
export const other = `0x${'0e'.repeat(20)}` as const;
export const from = `0x${'f0'.repeat(20)}` as const;
const payTo = `0x${'9a'.repeat(20)}` as const;
export const nonce = `0x${'4e'.repeat(32)}` as const;
export const otherNonce = `0x${'4f'.repeat(32)}` as const;
export const transaction = `0x${'77'.repeat(32)}` as const;
export const blockHash = `0x${'bb'.repeat(32)}` as const;
export const expected: ExpectedTransfer = {
  transferMethod: 'eip3009',
  asset,
  from,
  payTo,
  value: 1_000_000n,
  nonce,
};

export const abiFalse = `0x${'0'.repeat(64)}`;
export const abiTrue = `0x${'0'.repeat(63)}1`;
export const word = (text: string): string => `0x${text.replace('0x', '').padStart(64, '0')}`;
export const topics = {
  use: toEventSelector('AuthorizationUsed(address,bytes32)'),
  canceled: toEventSelector('AuthorizationCanceled(address,bytes32)'),
  transfer: toEventSelector('Transfer(address,address,uint256)'),
};

export interface TestLog {
  readonly address: string;
  readonly topics: readonly unknown[];
  readonly data: unknown;
}

export function used({
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

export function sent({ by = from, to = payTo, value = expected.value, at = asset }: Sent = {}): TestLog {
  return {
    address: at,
    topics: [topics.transfer, word(by), word(to)],
    data: word(value.toString(16)),
  };
}

const block = { blockNumber: '0x10', blockHash };
export const place = { hash: transaction, ...block, input: '0x00', accessList: [] };

export function mined(logs: readonly TestLog[], change: object = {}): readonly object[] {
  return logs.map((log, at) => {
    const logIndex = `0x${(at + 5).toString(16)}`;
    return { ...log, logIndex, transactionHash: transaction, ...block, removed: false, ...change };
  });
}

export const paidAt = (logIndex: number): object => ({
  kind: 'paid',
  blockNumber: 16n,
  blockHash,
  logIndex,
});
const contradicted = (why: string): object => ({ kind: 'contradicted', why, blockNumber: 16n, blockHash });
export const noTransfer = contradicted('no_transfer');
export const noUse = contradicted('no_authorization_used');
export const plain = [used(), sent()];
