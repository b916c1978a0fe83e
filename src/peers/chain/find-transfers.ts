import type { Address, Hex } from '../../domain/values/primitives.ts';
import { addressWord } from '../rpc/eth-call.ts';
import { type RpcAnswer, unavailable } from '../rpc/json-rpc.ts';
import type { Ask } from './blocks.ts';
import { mayBeRange, readLogRange } from './log-range.ts';
import { transferred } from './transfers.ts';

/** Transfers of a token of exactly so many atoms to an address, from anyone. */
export interface WantedTransfers {
  readonly asset: Address;
  readonly to: Address;
  readonly value: bigint;
}

/** A transfer's place on the chain. */
export interface FoundTransfer {
  readonly transaction: Hex;
  readonly logIndex: number;
}

const widestRange = 2_000n;
/** A month of a chain with a block every two seconds. */
const maxRequests = 700;

/** All of them in a range of blocks, both ends included. Unavailable where the node does not answer for each of its blocks. */
export async function findTransfers(
  ask: Ask,
  { asset, to, value }: WantedTransfers,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<RpcAnswer<readonly FoundTransfer[]>> {
  const query = { addresses: [asset], topics: [transferred, null, addressWord(to)] };
  const found: FoundTransfer[] = [];
  let range = widestRange;
  let from = fromBlock;
  for (let request = 0; request < maxRequests; request++) {
    if (from > toBlock) return { kind: 'answer', value: found };
    const end = from + range - 1n < toBlock ? from + range - 1n : toBlock;
    const answer = await readLogRange(ask, query, from, end);
    if (answer.kind === 'unavailable') {
      if (!mayBeRange(answer) || end === from) return answer;
      range = (end - from + 1n) / 2n;
      continue;
    }
    for (const { data, transaction, logIndex } of answer.value.logs)
      if (data.length === 66 && BigInt(data) === value) found.push({ transaction, logIndex });
    from = end + 1n;
  }
  return unavailable('range_too_long');
}
