import { setTimeout as sleep } from 'node:timers/promises';
import { toEventSelector, toFunctionSelector } from 'viem';
import { z } from 'zod';
import { isHex32, parseAddress, type Address, type Hex } from '../domain/primitives.ts';
import { abiFalse, abiTrue, addressWord, ethCall, hexBytes, smallAnswerBytes } from './eth-call.ts';
import { createRpc, type RpcCall, type RpcUnavailable } from './json-rpc.ts';

/** The transfer that a payment authorizes. Addresses and nonce lower-case; value in the token's atoms. */
export interface ExpectedTransfer {
  readonly asset: Address;
  readonly from: Address;
  readonly payTo: Address;
  readonly value: bigint;
  readonly nonce: Hex;
}

export type AuthorizationAnswer = { readonly kind: 'answer'; readonly used: boolean } | RpcUnavailable;

export type ChainIdAnswer = { readonly kind: 'answer'; readonly matches: boolean } | RpcUnavailable;

export type SettlementAnswer =
  | {
      readonly kind: 'paid';
      readonly blockNumber: bigint;
      readonly blockHash: Hex;
      /** Of the Transfer: with chain and transaction, what one payment claims. */
      readonly logIndex: number;
    }
  /** No receipt, or none in a block yet. */
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'contradicted';
      readonly why: 'reverted' | 'no_authorization_used' | 'no_transfer';
    }
  | RpcUnavailable;

export interface Chain {
  /** Where it is asked. */
  readonly rpcUrl: string;
  /** `authorizationState(from, nonce)` at latest. True also for a cancelled authorization. */
  authorizationState(asset: Address, from: Address, nonce: Hex): Promise<AuthorizationAnswer>;
  /** Whether this transaction (lower-case hash) carries the expected transfer. */
  findSettlement(transaction: Hex, expected: ExpectedTransfer): Promise<SettlementAnswer>;
  /** Asks until paid, contradicted or `waitMs` is over; then the last answer. */
  waitForSettlement(transaction: Hex, expected: ExpectedTransfer, waitMs: number): Promise<SettlementAnswer>;
  /** Whether the RPC serves the chain it is configured for. */
  checkChainId(): Promise<ChainIdAnswer>;
  /** Waits for running requests, then drops the connections; waits for settlements end early. */
  close(): Promise<void>;
}

export interface ChainOptions {
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly timeoutMs: number;
}

/**
 * Reads one EVM chain over raw JSON-RPC: three methods, no retries, no batching.
 * @throws TypeError when the URL is none: a mistake of the configuration
 */
export function createChain(options: ChainOptions): Chain {
  const rpc = createRpc(options.rpcUrl);
  const { timeoutMs } = options;
  const find = async (transaction: Hex, expected: ExpectedTransfer, limitMs: number) => {
    const answer = await rpc.call(receiptCall(transaction), limitMs);
    return answer.kind === 'answer' ? readSettlement(answer.value, expected) : answer;
  };

  return {
    rpcUrl: options.rpcUrl,
    async authorizationState(asset, from, nonce) {
      const answer = await rpc.call(stateCall(asset, from, nonce), timeoutMs);
      return answer.kind === 'answer' ? { kind: 'answer', used: answer.value } : answer;
    },
    findSettlement: (transaction, expected) => find(transaction, expected, timeoutMs),
    waitForSettlement: (transaction, expected, waitMs) =>
      poll((leftMs) => find(transaction, expected, Math.min(timeoutMs, leftMs)), waitMs),
    async checkChainId() {
      const answer = await rpc.call(chainIdCall, timeoutMs);
      if (answer.kind === 'unavailable') return answer;
      return { kind: 'answer', matches: answer.value === BigInt(options.chainId) };
    },
    close: () => rpc.close(),
  };
}

const firstPauseMs = 50;
const longestPauseMs = 500;

async function poll(
  ask: (leftMs: number) => Promise<SettlementAnswer>,
  waitMs: number,
): Promise<SettlementAnswer> {
  const endMs = performance.now() + waitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    const answer = await ask(Math.max(endMs - performance.now(), 1));
    if (answer.kind === 'paid' || answer.kind === 'contradicted') return answer;
    if (answer.kind === 'unavailable' && answer.cause === 'closed') return answer;
    if (performance.now() + pauseMs >= endMs) return answer;
    await sleep(pauseMs);
  }
}

// The three calls and the shapes of their results.

/** A transaction that settles hundreds of payments still fits. */
const receiptBytes = 2 * 1024 * 1024;

const bytes32 = z
  .string()
  .toLowerCase()
  .pipe(z.custom<Hex>((text) => typeof text === 'string' && isHex32(text)));
const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,16}$/i)
  .transform(BigInt);
const address = z
  .string()
  .transform((text) => parseAddress(text))
  .pipe(z.custom<Address>((value) => value !== undefined));

const logSchema = z.object({
  address,
  topics: z.array(bytes32).max(4),
  data: hexBytes,
  logIndex: quantity,
  transactionHash: bytes32,
  blockHash: bytes32.nullable(),
  removed: z.literal(false).optional(),
});
type Log = z.infer<typeof logSchema>;

const receiptSchema = z.object({
  transactionHash: bytes32,
  status: z.enum(['0x0', '0x1']),
  blockNumber: quantity.nullable(),
  blockHash: bytes32.nullable(),
  logs: z.array(logSchema),
});
type Receipt = z.infer<typeof receiptSchema>;

const chainIdCall: RpcCall<bigint> = {
  method: 'eth_chainId',
  params: [],
  result: quantity,
  maxResponseBytes: smallAnswerBytes,
};

const stateSelector = toFunctionSelector('authorizationState(address,bytes32)');

function stateCall(asset: Address, from: Address, nonce: Hex): RpcCall<boolean> {
  const data = `${stateSelector}${addressWord(from).slice(2)}${nonce.slice(2)}` as const;
  const result = z.enum([abiFalse, abiTrue]).transform((text) => text === abiTrue);
  return ethCall({ to: asset, data }, result);
}

function receiptCall(transaction: Hex): RpcCall<Receipt | null> {
  return {
    method: 'eth_getTransactionReceipt',
    params: [transaction],
    result: receiptSchema.refine((receipt) => isCoherent(receipt, transaction)).nullable(),
    maxResponseBytes: receiptBytes,
  };
}

/** The receipt is the one asked for, all its logs are of it, and they stand in their order. */
function isCoherent(receipt: Receipt, transaction: Hex): boolean {
  const { transactionHash, blockHash, logs } = receipt;
  const own = logs.every((log) => log.transactionHash === transactionHash && log.blockHash === blockHash);
  const ordered = logs.every(({ logIndex }, at) => logIndex > (logs[at - 1]?.logIndex ?? -1n));
  return transactionHash === transaction && own && ordered;
}

// Which Transfer belongs to an authorization.

const authorizationUsed = toEventSelector('AuthorizationUsed(address,bytes32)');
const transferred = toEventSelector('Transfer(address,address,uint256)');
/** What some nodes give for a block that is not sealed yet. */
const noBlock = `0x${'0'.repeat(64)}`;

function readSettlement(receipt: Receipt | null, expected: ExpectedTransfer): SettlementAnswer {
  if (!receipt?.blockHash || receipt.blockNumber === null || receipt.blockHash === noBlock) {
    return { kind: 'absent' };
  }
  if (receipt.status === '0x0') return { kind: 'contradicted', why: 'reverted' };
  const { blockNumber, blockHash } = receipt;
  const events = receipt.logs.filter(
    (log) => log.address === expected.asset && (isUse(log) || isTransfer(log)),
  );
  const use = events.findIndex((log) => isUse(log) && isUseOf(log, expected));
  if (use === -1) return { kind: 'contradicted', why: 'no_authorization_used' };
  const transfer = transfersOf(events, use).find((log) => isExpected(log, expected));
  if (transfer === undefined) return { kind: 'contradicted', why: 'no_transfer' };
  return { kind: 'paid', blockNumber, blockHash, logIndex: Number(transfer.logIndex) };
}

/**
 * The transfers that belong to the use at `use`, nearest first: those up to the next use, or, where the token
 * emits Transfer first, those back to the previous use. The order is judged once over all uses of the
 * transaction, so that no transfer can belong to two of them. Where both readings hold, use-first
 * is taken, as USDC and EURC do it: an honest transfer read wrongly costs a wait, not a second call.
 */
function transfersOf(events: readonly Log[], use: number): readonly Log[] {
  if (isTransferFirst(events)) {
    const previous = events.findLastIndex((log, at) => at < use && isUse(log));
    return events.slice(previous + 1, use).toReversed();
  }
  const next = events.findIndex((log, at) => at > use && isUse(log));
  return events.slice(use + 1, next === -1 ? events.length : next);
}

/** True when every use has its payer's Transfer right before it, and not every use has one right after it. */
function isTransferFirst(events: readonly Log[]): boolean {
  const uses = [...events.keys()].filter((at) => isUse(events[at]));
  const each = (step: -1 | 1) => uses.every((at) => isTransferBy(events[at + step], events[at]));
  return each(-1) && !each(1);
}

function isTransferBy(log: Log | undefined, use: Log | undefined): boolean {
  return isTransfer(log) && log?.topics[1] === use?.topics[1];
}

function isUse(log: Log | undefined): boolean {
  return log?.topics[0] === authorizationUsed && log.topics.length === 3;
}

/** Three topics: an ERC-721 Transfer has four. */
function isTransfer(log: Log | undefined): boolean {
  return log?.topics[0] === transferred && log.topics.length === 3;
}

function isUseOf(log: Log, { from, nonce }: ExpectedTransfer): boolean {
  return log.topics[1] === addressWord(from) && log.topics[2] === nonce;
}

function isExpected(log: Log, { from, payTo, value }: ExpectedTransfer): boolean {
  const parties = log.topics[1] === addressWord(from) && log.topics[2] === addressWord(payTo);
  return isTransfer(log) && parties && log.data === `0x${value.toString(16).padStart(64, '0')}`;
}
