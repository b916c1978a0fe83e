/** A transfer in its block. */
export interface PlacedTransfer {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
  /** Unix seconds of the block, where known. */
  readonly blockTimeSecs?: number;
}

/** A transfer's place as event fields. */
export function placeData({ blockNumber, blockHash, logIndex, blockTimeSecs }: PlacedTransfer) {
  return {
    block_number: String(blockNumber),
    block_hash: blockHash,
    ...(blockTimeSecs === undefined ? {} : { block_time: blockTimeSecs }),
    log_index: logIndex,
  };
}
