/** What one body takes of the room. */
export interface BodyReservation {
  /** So much more of it has arrived. False: it has no place any more, and nothing of it may be kept. */
  grow(bytes: number): boolean;
  /** All of it has arrived, and takes so much with what is made of it. False where there is no room for that. */
  startWork(bytes: number): boolean;
  /** No more is left of it than this. */
  shrink(bytes: number): void;
  /** Nothing is left of it. */
  release(): void;
}

export interface BodyMemory {
  /** @param onDrop its place was given to others while it was arriving: nothing of it may be kept */
  reserve(onDrop: () => void): BodyReservation;
}

interface Arrival {
  bytes: number;
  readonly sinceMs: number;
  readonly onDrop: () => void;
}

/**
 * The memory that bodies may take. Where those that arrive take too much together, the one that has taken most for longest
 * goes first: who sends slowly must not keep out the others. A body alone always has room.
 */
export function createBodyMemory(
  max: { readonly arrivingBytes: number; readonly workingBytes: number },
  nowMs: () => number = () => performance.now(),
): BodyMemory {
  const arrivals = new Set<Arrival>();
  let arrivingBytes = 0;
  let workingBytes = 0;

  const end = (arrival: Arrival): boolean => {
    if (!arrivals.delete(arrival)) return false;
    arrivingBytes -= arrival.bytes;
    return true;
  };
  const drop = (): void => {
    const now = nowMs();
    const weight = ({ bytes, sinceMs }: Arrival): number => bytes * (1 + now - sinceMs);
    const heaviest = [...arrivals].reduce((one, other) => (weight(other) > weight(one) ? other : one));
    end(heaviest);
    heaviest.onDrop();
  };

  return {
    reserve(onDrop) {
      const arrival: Arrival = { bytes: 0, sinceMs: nowMs(), onDrop };
      arrivals.add(arrival);
      let working = 0;
      const take = (bytes: number): void => {
        workingBytes += bytes - working;
        working = bytes;
      };
      return {
        grow(bytes) {
          if (!arrivals.has(arrival)) return false;
          arrival.bytes += bytes;
          arrivingBytes += bytes;
          while (arrivingBytes > max.arrivingBytes && arrivals.size > 1) drop();
          return arrivals.has(arrival);
        },
        startWork(bytes) {
          if (!end(arrival) || (workingBytes > 0 && workingBytes + bytes > max.workingBytes)) return false;
          take(bytes);
          return true;
        },
        shrink: (bytes) => take(Math.min(bytes, working)),
        release() {
          end(arrival);
          take(0);
        },
      };
    },
  };
}
