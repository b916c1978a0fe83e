import { toEventSelector } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { Log } from './logs.ts';

export const transferred = toEventSelector('Transfer(address,address,uint256)');

/** A log's place in its block: with chain and transaction, what one payment claims. */
export interface LogPlace {
  readonly logIndex: number;
  /** The block's time, if the node sends it. */
  readonly blockTimeSecs?: number;
}

/** One ERC-20 transfer. `value` is in the token's atoms. */
export interface Transfer extends LogPlace {
  readonly asset: Address;
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
}

/** Undefined for a log that is not an ERC-20 Transfer, and for one whose encoding no token uses. */
export function transferOf(log: Log): Transfer | undefined {
  const [, from, to] = log.topics.map(addressIn);
  if (!isTransfer(log) || !from || !to || !/^0x[0-9a-f]{64}$/.test(log.data)) return undefined;
  return { asset: log.address, from, to, value: BigInt(log.data), ...placeOf(log) };
}

/** Three topics: an ERC-721 Transfer has four. */
export function isTransfer(log: Log | undefined): boolean {
  return log?.topics[0] === transferred && log.topics.length === 3;
}

export function placeOf({ logIndex, blockTimestamp }: Log): LogPlace {
  const time = blockTimestamp == null ? {} : { blockTimeSecs: Number(blockTimestamp) };
  return { logIndex, ...time };
}

/** The address in a topic; undefined if the topic is not an address. */
export function addressIn(topic: Hex): Address | undefined {
  return topic.startsWith(`0x${'0'.repeat(24)}`) ? `0x${topic.slice(26)}` : undefined;
}
