import type { Hex } from '../../../base/values/primitives.ts';
import { type RpcAnswer, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { mayBeRange } from './log-range.ts';
import { readChunk } from './transfer-chunk.ts';
import type { Transfer } from './transfers.ts';

/** Transfers of a token of exactly this many atoms to an address, from anyone. */
export type WantedTransfers = Pick<Transfer, 'asset' | 'to' | 'value'>;

/** A transfer's place on the chain. */
export interface FoundTransfer {
  readonly transaction: Hex;
  readonly logIndex: number;
}

const widestRange = 2_000n;
/** A month of a chain with a block every two seconds. */
const maxRequests = 700;

/**
 * All of them in a range of blocks, both ends included, even if the address has many other transfers. Unavailable if the node does not
 * answer for each of its blocks.
 */
export async function findTransfers(
  ask: Ask,
  network: string,
  { asset, to, value }: WantedTransfers,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<RpcAnswer<readonly FoundTransfer[]>> {
  const query = { assets: [asset], payees: [to] };
  const found: FoundTransfer[] = [];
  let range = widestRange;
  let from = fromBlock;
  for (let request = 0; request < maxRequests; request++) {
    if (from > toBlock) return { kind: 'answer', value: found };
    const end = from + range - 1n < toBlock ? from + range - 1n : toBlock;
    const answer = await readChunk(ask, network, query, from, end);
    if (answer.kind === 'unavailable') {
      if (!mayBeRange(answer) || end === from) return answer;
      range = (end - from + 1n) / 2n;
      continue;
    }
    for (const one of answer.value.transfers)
      if (one.to === to && one.amount === value)
        found.push({ transaction: one.transaction as Hex, logIndex: one.logIndex });
    from = end + 1n;
  }
  return unavailable('range_too_long');
}
