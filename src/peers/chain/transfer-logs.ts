import { toEventSelector } from 'viem';
import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import { addressWord, hexBytes } from '../rpc/eth-call.ts';
import type { RpcCall, RpcUnavailable } from '../rpc/json-rpc.ts';
import { address, bytes32, noBlockHash, quantity } from '../rpc/rpc-values.ts';

/** The transfer that a payment authorizes. Addresses and nonce lower-case; value in the token's atoms. */
export interface ExpectedTransfer {
  readonly asset: Address;
  readonly from: Address;
  readonly payTo: Address;
  readonly value: bigint;
  readonly nonce: Hex;
}

/** A block that was right when it was asked; whether it stays is another question. */
interface BlockPlace {
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
}

/** A Transfer in its block: with chain and transaction, what one payment claims. */
export interface LogPlace {
  readonly logIndex: number;
  /** The block's time, where the node tells it. */
  readonly blockTimeSecs?: number;
}

export type SettlementAnswer =
  | ({ readonly kind: 'paid' } & LogPlace & BlockPlace)
  /** No receipt, or none in a block yet. */
  | { readonly kind: 'absent' }
  | ({
      readonly kind: 'contradicted';
      readonly why: 'reverted' | 'no_authorization_used' | 'no_transfer';
    } & BlockPlace)
  | RpcUnavailable;

/** A transaction that settles hundreds of payments still fits. */
const receiptBytes = 2 * 1024 * 1024;

export const logSchema = z.object({
  address,
  topics: z.array(bytes32).max(4),
  data: hexBytes,
  logIndex: quantity,
  transactionHash: bytes32,
  blockHash: bytes32.nullable(),
  // newer nodes tell it
  blockTimestamp: quantity.nullish(),
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
export type Receipt = z.infer<typeof receiptSchema>;

export function receiptCall(transaction: Hex): RpcCall<Receipt | null> {
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

export const authorizationUsed = toEventSelector('AuthorizationUsed(address,bytes32)');
export const transferred = toEventSelector('Transfer(address,address,uint256)');

/** Tokens that moved, as a transaction's logs tell. Values in the token's atoms. */
export interface Transfer extends LogPlace {
  readonly asset: Address;
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
}

export type TransfersAnswer =
  | ({ readonly kind: 'mined'; readonly transfers: readonly Transfer[] } & BlockPlace)
  /** No receipt, or none in a block yet. */
  | { readonly kind: 'absent' }
  | ({ readonly kind: 'reverted' } & BlockPlace)
  | RpcUnavailable;

/** All that a receipt says was transferred, whoever asked for it. */
export function readTransfers(receipt: Receipt | null): Exclude<TransfersAnswer, RpcUnavailable> {
  if (!receipt?.blockHash || receipt.blockNumber === null || receipt.blockHash === noBlockHash)
    return { kind: 'absent' };
  const { status, logs, blockNumber, blockHash } = receipt;
  const place = { blockNumber, blockHash };
  if (status === '0x0') return { kind: 'reverted', ...place };
  return { kind: 'mined', ...place, transfers: logs.flatMap((log) => transferOf(log) ?? []) };
}

/** Undefined for what is no ERC-20 Transfer, and for one of a spelling that no token uses. */
export function transferOf(log: Log): Transfer | undefined {
  const [, from, to] = log.topics.map(addressIn);
  if (!isTransfer(log) || !from || !to || !/^0x[0-9a-f]{64}$/.test(log.data)) return undefined;
  return { asset: log.address, from, to, value: BigInt(log.data), ...placeOf(log) };
}

function placeOf({ logIndex, blockTimestamp }: Log): LogPlace {
  const time = blockTimestamp == null ? {} : { blockTimeSecs: Number(blockTimestamp) };
  return { logIndex: Number(logIndex), ...time };
}

/** The address that a topic holds. */
function addressIn(topic: Hex): Address | undefined {
  return topic.startsWith(`0x${'0'.repeat(24)}`) ? `0x${topic.slice(26)}` : undefined;
}

/** What a receipt says about the expected transfer. */
export function readSettlement(
  receipt: Receipt | null,
  expected: ExpectedTransfer,
): Exclude<SettlementAnswer, RpcUnavailable> {
  if (!receipt?.blockHash || receipt.blockNumber === null || receipt.blockHash === noBlockHash) {
    return { kind: 'absent' };
  }
  const place = { blockNumber: receipt.blockNumber, blockHash: receipt.blockHash };
  if (receipt.status === '0x0') return { kind: 'contradicted', why: 'reverted', ...place };
  const events = receipt.logs.filter(
    (log) => log.address === expected.asset && (isUse(log) || isTransfer(log)),
  );
  const use = events.findIndex((log) => isUse(log) && isUseOf(log, expected));
  if (use === -1) return { kind: 'contradicted', why: 'no_authorization_used', ...place };
  const transfer = transfersOf(events, use).find((log) => isExpected(log, expected));
  if (transfer === undefined) return { kind: 'contradicted', why: 'no_transfer', ...place };
  return { kind: 'paid', ...place, ...placeOf(transfer) };
}

/** Whether a transaction moved any of the token from payer to payee. */
export function hasTransferBetween({ logs }: Receipt, { asset, from, payTo }: ExpectedTransfer): boolean {
  return logs.some(
    (log) =>
      log.address === asset &&
      isTransfer(log) &&
      log.topics[1] === addressWord(from) &&
      log.topics[2] === addressWord(payTo),
  );
}

/** Which Transfer of a receipt each EIP-3009 authorization moved. */
export interface UsedAuthorization {
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
  readonly logIndex: number;
}

/** Every authorization that a receipt shows used, with the payer's nearest Transfer of that token. */
export function usedAuthorizations({ logs }: Receipt): UsedAuthorization[] {
  const assets = new Set(logs.filter(isUse).map(({ address: asset }) => asset));
  return [...assets].flatMap((asset) => {
    const events = logs.filter((log) => log.address === asset && (isUse(log) || isTransfer(log)));
    return events.flatMap((use, at) => {
      const [, payer, nonce] = use.topics;
      if (!isUse(use) || payer === undefined || nonce === undefined) return [];
      const transfer = transfersOf(events, at).find((log) => isTransferBy(log, use));
      const by = addressIn(payer);
      return by && transfer ? [{ asset, payer: by, nonce, logIndex: Number(transfer.logIndex) }] : [];
    });
  });
}

// Which Transfer belongs to an authorization.

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
