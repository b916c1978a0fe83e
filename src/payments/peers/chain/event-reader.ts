import type { Finality } from '../../../base/values/triggers/trigger-terms.ts';
import type { Caip2 } from '../../../base/values/primitives.ts';
import { askRightChain } from '../../../base/peers/rpc/chain-id.ts';
import { createRpc, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import {
  type Ask,
  askBlock,
  askLinkedBlock,
  askTaggedBlock,
  type Block,
  type BlockAnswer,
} from './blocks.ts';
import { askBlockLogs, readLogRange } from './log-range.ts';
import type { LogFilter } from './logs.ts';
import type { ChainOptions } from './chain.ts';

export type EventReader = ReturnType<typeof createEventReader>;

/**
 * Reads the events of contracts on one chain. Answers come from the configured chain, or are unavailable.
 * @throws TypeError for an invalid URL
 */
export function createEventReader({
  network,
  chainId,
  rpcUrl,
  timeoutMs,
}: ChainOptions & { readonly network: Caip2 }) {
  const rpc = createRpc(rpcUrl);
  const askWithin = askRightChain(rpc, chainId);
  const ask: Ask = (call) => askWithin(call, timeoutMs);
  return {
    network,
    /** The newest block whose logs count. */
    async head(finality: Finality): Promise<BlockAnswer> {
      if (finality === 'final') return askTaggedBlock(ask, 'finalized');
      const latest = await askTaggedBlock(ask, 'latest');
      if (latest.kind === 'unavailable' || finality.confirmations === 0) return latest;
      const number = latest.block.number - BigInt(finality.confirmations);
      const answer = await askBlock(ask, number < 0n ? 0n : number);
      if (answer.kind === 'unavailable') return answer;
      return answer.value ? { kind: 'answer', block: answer.value } : unavailable('missing_block');
    },
    blockAt: (number: bigint) => askBlock(ask, number),
    linkedBlockAt: (number: bigint) => askLinkedBlock(ask, number),
    blockLogs: (filter: LogFilter, block: Block) => askBlockLogs(ask, filter, block),
    logRange: (filter: LogFilter, from: bigint, to: bigint) => readLogRange(ask, filter, from, to),
    /** Waits for running requests, then drops the connections. */
    close: (): Promise<void> => rpc.close(),
  };
}
