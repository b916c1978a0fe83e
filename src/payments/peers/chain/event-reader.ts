import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import type { Finality } from '../../../base/values/triggers/trigger-terms.ts';
import type { Caip2 } from '../../../base/values/primitives.ts';
import { askRightChain } from '../../../base/peers/rpc/chain-id.ts';
import { createRpc, type RpcAnswer, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import {
  type Ask,
  askBlock,
  askLinkedBlock,
  askTaggedBlock,
  type Block,
  type BlockAnswer,
  type LinkedBlock,
} from './blocks.ts';
import { askBlockLogs, type LogQuery, type LogRange, readLogRange } from './log-range.ts';

/** Reads the events of contracts on one chain. Answers come from the configured chain, or are unavailable. */
export interface EventReader {
  readonly network: Caip2;
  /** The newest block whose logs count. */
  head(finality: Finality): Promise<BlockAnswer>;
  /** The canonical block at a height; null where there is none. */
  blockAt(number: bigint): Promise<RpcAnswer<Block | null>>;
  /** The same, with its parent. */
  linkedBlockAt(number: bigint): Promise<RpcAnswer<LinkedBlock | null>>;
  /** The logs of one block in their order; unavailable where the node does not have that very block. */
  blockLogs(query: LogQuery, block: Block): Promise<RpcAnswer<readonly ChainLog[]>>;
  /** The logs of a range in their order, both ends included; `answers_differ` where the chain changed meanwhile. */
  logRange(query: LogQuery, from: bigint, to: bigint): Promise<RpcAnswer<LogRange>>;
  /** Waits for running requests, then drops the connections. */
  close(): Promise<void>;
}

export interface EventReaderOptions {
  readonly network: Caip2;
  readonly chainId: number;
  readonly rpcUrl: string;
  /** Of one request. */
  readonly timeoutMs: number;
}

/** @throws TypeError for an invalid URL */
export function createEventReader({ network, chainId, rpcUrl, timeoutMs }: EventReaderOptions): EventReader {
  const rpc = createRpc(rpcUrl);
  const askWithin = askRightChain(rpc, chainId);
  const ask: Ask = (call) => askWithin(call, timeoutMs);
  return {
    network,
    async head(finality) {
      if (finality === 'final') return askTaggedBlock(ask, 'finalized');
      const latest = await askTaggedBlock(ask, 'latest');
      if (latest.kind === 'unavailable' || finality.confirmations === 0) return latest;
      const number = latest.block.number - BigInt(finality.confirmations);
      const answer = await askBlock(ask, number < 0n ? 0n : number);
      if (answer.kind === 'unavailable') return answer;
      return answer.value ? { kind: 'answer', block: answer.value } : unavailable('missing_block');
    },
    blockAt: (number) => askBlock(ask, number),
    linkedBlockAt: (number) => askLinkedBlock(ask, number),
    blockLogs: (query, block) => askBlockLogs(ask, query, block),
    logRange: (query, from, to) => readLogRange(ask, query, from, to),
    close: () => rpc.close(),
  };
}
