import type { Period } from '../../../base/values/period.ts';
import type { BlockRange } from '../../rules/reconcile/reconcile.ts';
import type { Block } from '../../../payments/peers/chain/blocks.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { answered, ReconcileError, unanswered } from './reconcile-error.ts';

/** The final blocks of a period on one network. */
export interface PinnedBlocks extends BlockRange {
  /** Of the block `to`. */
  readonly toHash: Block['hash'];
}

/**
 * Finds the blocks with from <= timestamp < to, up to the last final one or `pinned`.
 * @throws ReconcileError if the chain does not answer
 */
export async function pinBlocks(
  chain: ChainScanner,
  { fromMs, toMs }: Period,
  pinned: bigint | undefined,
): Promise<PinnedBlocks> {
  const last = await lastBlock(chain, pinned);
  const first = await firstSince(chain, fromMs, last);
  const next = await firstSince(chain, toMs, last);
  const to = next ? next.number - 1n : last.number;
  const end = next ? await blockAt(chain, to < 0n ? 0n : to) : last;
  return {
    from: first?.number ?? last.number + 1n,
    to,
    toHash: end.hash,
    isCovered: next !== undefined,
  };
}

/** The canonical block of a height that must exist. */
export async function blockAt(chain: ChainScanner, number: bigint): Promise<Block> {
  const block = answered(chain.network, `block ${number}`, await chain.blockAt(number));
  if (block) return block;
  throw new ReconcileError(
    'rpc_unavailable',
    `the RPC for ${chain.network} has no block ${number}: it lacks old blocks. Nothing was stored: use an RPC that keeps them`,
  );
}

async function lastBlock(chain: ChainScanner, pinned: bigint | undefined): Promise<Block> {
  const { network } = chain;
  const answer = await chain.finalizedBlock();
  if (answer.kind === 'unavailable') throw unanswered(network, 'its last final block', answer);
  if (pinned === undefined) return answer.block;
  if (pinned > answer.block.number)
    throw new ReconcileError(
      'block_not_final',
      `block ${pinned} of ${network} is not final: the last final block is ${answer.block.number}`,
    );
  return blockAt(chain, pinned);
}

async function firstSince(chain: ChainScanner, ms: number, last: Block): Promise<Block | undefined> {
  const what = `the first block since ${new Date(ms).toISOString()}`;
  return answered(chain.network, what, await chain.firstBlockSince(Math.ceil(ms / 1_000), last));
}
