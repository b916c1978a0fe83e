/** The memory that one body takes. */
export interface BodyReservation {
  /** More bytes have arrived. False where the body was dropped: then nothing of it may be kept. */
  grow(bytes: number): boolean;
  /** The whole body has arrived; processing it takes this many bytes. False where the memory does not suffice. */
  startWork(bytes: number): boolean;
  /** From now on it takes at most this many bytes. */
  shrink(bytes: number): void;
  /** It takes no memory any more. */
  release(): void;
}

export interface BodyMemory {
  /** @param onDrop the body was dropped while it arrived, to free memory: nothing of it may be kept */
  reserve(onDrop: () => void): BodyReservation;
}

interface Arrival {
  bytes: number;
  readonly sinceMs: number;
  readonly onDrop: () => void;
}

/**
 * Limits the memory of request bodies. Where arriving bodies take too much together, the one with the largest product of size
 * and age is dropped, so that slow clients cannot keep out the others. A single body is always accepted.
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
