import type { Hex } from '../primitives.ts';

/** A block up to which everything was read. */
export interface Checkpoint {
  readonly number: bigint;
  readonly hash: Hex;
  /** Unix seconds, by the chain. */
  readonly timestampSecs: number;
}

/**
 * The blocks up to which a trigger has read its chain, the newest first: the first one is the cursor, and the others are where it goes
 * back to after a reorg.
 */
export type ChainPosition = readonly [Checkpoint, ...Checkpoint[]];

/** The blocks are divided into stretches of 1, 2, 4 … 2^22 blocks: up to three weeks of blocks of half a second. */
const sizes = Array.from({ length: 23 }, (_, exponent) => 2n ** BigInt(exponent));
const keptOfSize = 2;

/**
 * Moves the cursor on. Of the older checkpoints the last one in each of the last two stretches of every size stays, so that a reorg goes back
 * at most about twice as far as it reaches; and the first one of all, which no reorg must reach below.
 */
export function moveOn(position: ChainPosition, to: Checkpoint): ChainPosition {
  const older = position.filter(({ number }) => number < to.number);
  const kept = new Set<Checkpoint>();
  for (const size of sizes) {
    const stretches = new Set<bigint>();
    for (const checkpoint of older) {
      const stretch = checkpoint.number / size;
      if (stretch === to.number / size || stretches.has(stretch)) continue;
      if (stretches.size === keptOfSize) break;
      stretches.add(stretch);
      kept.add(checkpoint);
    }
  }
  const first = older.at(-1);
  return [to, ...older.filter((checkpoint) => checkpoint === first || kept.has(checkpoint))];
}
