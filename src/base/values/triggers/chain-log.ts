import { sha256 } from '../sha256.ts';
import { canonicalJson } from '../canonical-json.ts';
import type { Address, Caip2, Hex } from '../primitives.ts';
import type { LogContent } from './chain-event.ts';

/** A log in a block. */
export interface ChainLog extends LogContent {
  readonly address: Address;
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
  readonly transaction: Hex;
  readonly logIndex: number;
}

/** A log, and the id under which it is done once. */
export interface NamedLog {
  readonly id: string;
  readonly log: ChainLog;
}

/**
 * Names the logs of some blocks, which are in the order of the chain. An id has nothing of the block: a transaction that a reorg
 * moves to another block keeps the ids of its logs, though their places change. It has the log's content: if the
 * transaction emits something else there, that is another event. Equal logs of one transaction are numbered.
 */
export function nameLogs(network: Caip2, logs: readonly ChainLog[]): readonly NamedLog[] {
  const seen = new Map<string, number>();
  return logs.map((log) => {
    const { transaction, address, topics, data } = log;
    const content = sha256(canonicalJson([address, topics, data])).slice(2, 34);
    const name = `${network}/${transaction}/${content}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return { id: `${name}/${nth}`, log };
  });
}
