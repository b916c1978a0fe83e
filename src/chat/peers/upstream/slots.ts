export interface SlotLimits {
  /** Maximum of concurrent requests, each counted until its answer ends. */
  readonly maxConcurrent: number;
  /** How many of them may be of free models: the others are reserved for those that are paid. */
  readonly maxConcurrentFree: number;
  /** How long a reader may read nothing of a waiting answer before another request may take its slot. */
  readonly stalledReaderTimeoutMs: number;
}

/** What runs in a slot. */
export interface Occupant {
  /** Since when its answer waits for a reader that reads nothing, by `performance.now()`; undefined while it is read. */
  readonly stalledSinceMs: number | undefined;
  /** Ends it, which releases its slot. */
  endStalled(): void;
}

/** Permission to run one request. */
export interface Slot {
  /** Undefined until its request is sent. */
  occupant: Occupant | undefined;
  release(): void;
}

export interface Slots {
  readonly taken: number;
  /**
   * Takes a slot; undefined if all are taken. Where all are, the request whose reader has been stalled longest loses its slot, one
   * of a free model first; a request of a free model takes none of a paid one.
   */
  take(isFree: boolean): Slot | undefined;
}

interface Taken extends Slot {
  readonly isFree: boolean;
}

export function createSlots({ maxConcurrent, maxConcurrentFree, stalledReaderTimeoutMs }: SlotLimits): Slots {
  const all = new Set<Taken>();

  const hasRoom = (isFree: boolean): boolean =>
    all.size < maxConcurrent &&
    (!isFree || Array.from(all).filter((slot) => slot.isFree).length < maxConcurrentFree);
  const endStalled = (isFree: boolean): void => {
    const latestMs = performance.now() - stalledReaderTimeoutMs;
    const stalled = Array.from(all)
      .filter((slot) => (slot.occupant?.stalledSinceMs ?? Infinity) <= latestMs && (slot.isFree || !isFree))
      .toSorted(
        (one, other) =>
          Number(other.isFree) - Number(one.isFree) ||
          (one.occupant?.stalledSinceMs ?? 0) - (other.occupant?.stalledSinceMs ?? 0),
      );
    stalled[0]?.occupant?.endStalled();
  };

  return {
    get taken() {
      return all.size;
    },
    take(isFree) {
      if (!hasRoom(isFree)) endStalled(isFree);
      if (!hasRoom(isFree)) return undefined;
      const slot: Taken = { isFree, occupant: undefined, release: () => void all.delete(slot) };
      all.add(slot);
      return slot;
    },
  };
}
