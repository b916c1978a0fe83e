/** A transfer in its block. */
export interface PlacedTransfer {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
  /** The block's time, where it is known. */
  readonly blockTimeSecs?: number;
}

/** Where a transfer stands, as events say it. */
export function placeData({ blockNumber, blockHash, logIndex, blockTimeSecs }: PlacedTransfer) {
  return {
    block_number: String(blockNumber),
    block_hash: blockHash,
    ...(blockTimeSecs === undefined ? {} : { block_time: blockTimeSecs }),
    log_index: logIndex,
  };
}
