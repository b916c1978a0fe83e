/** The memory that one body takes. */
export interface BodyReservation {
  /** More bytes have arrived. False if the body was dropped: then nothing of it may be kept. */
  grow(bytes: number): boolean;
  /** The whole body has arrived; processing it takes this many bytes. False if the memory does not suffice. */
  startWork(bytes: number): boolean;
  /** From now on it takes at most this many bytes. */
  shrink(bytes: number): void;
  /** It takes no memory any more. */
  release(): void;
}

export interface BodyMemory {
  /** @param onDrop the body was dropped while it arrived, to free memory: nothing of it may be kept */
  reserve(client: string, onDrop: () => void): BodyReservation;
}

interface Arrival {
  bytes: number;
  readonly client: string;
  readonly sinceMs: number;
  readonly onDrop: () => void;
}

/** The bytes that a client takes, while it takes any. */
interface Share {
  bodies: number;
  arrivingBytes: number;
  workingBytes: number;
}

interface BodyMemoryLimits {
  readonly arrivingBytes: number;
  readonly workingBytes: number;
}

/**
 * Limits the memory of request bodies. Where arriving bodies take too much together, the one with the largest product of size
 * and age is dropped, so that slow clients cannot keep out the others. A single body is always accepted. One client gets at most
 * half of the memory.
 */
export function createBodyMemory(
  max: BodyMemoryLimits,
  nowMs: () => number = () => performance.now(),
): BodyMemory {
  const arrivals = new Set<Arrival>();
  const shares = new Map<string, Share>();
  const all: Share = { bodies: 0, arrivingBytes: 0, workingBytes: 0 };
  const maxShare = { arrivingBytes: max.arrivingBytes / 2, workingBytes: max.workingBytes / 2 };

  const shareOf = (client: string): Share => {
    const share = shares.get(client) ?? { bodies: 0, arrivingBytes: 0, workingBytes: 0 };
    shares.set(client, share);
    return share;
  };
  const end = (arrival: Arrival): boolean => {
    if (!arrivals.delete(arrival)) return false;
    all.arrivingBytes -= arrival.bytes;
    shareOf(arrival.client).arrivingBytes -= arrival.bytes;
    return true;
  };
  const drop = (among: readonly Arrival[]): void => {
    const now = nowMs();
    const weight = ({ bytes, sinceMs }: Arrival): number => bytes * (1 + now - sinceMs);
    const heaviest = among.reduce((one, other) => (weight(other) > weight(one) ? other : one));
    end(heaviest);
    heaviest.onDrop();
  };
  const makeRoom = ({ client }: Arrival): void => {
    const share = shareOf(client);
    while (share.arrivingBytes > maxShare.arrivingBytes) {
      const own = [...arrivals].filter((arrival) => arrival.client === client);
      if (own.length < 2) break;
      drop(own);
    }
    while (all.arrivingBytes > max.arrivingBytes && arrivals.size > 1) drop([...arrivals]);
  };
  const fits = (share: Share, bytes: number): boolean =>
    (all.workingBytes === 0 || all.workingBytes + bytes <= max.workingBytes) &&
    (share.workingBytes === 0 || share.workingBytes + bytes <= maxShare.workingBytes);

  return {
    reserve(client, onDrop) {
      const arrival: Arrival = { bytes: 0, client, sinceMs: nowMs(), onDrop };
      const share = shareOf(client);
      arrivals.add(arrival);
      share.bodies += 1;
      let working = 0;
      let isReleased = false;
      const take = (bytes: number): void => {
        all.workingBytes += bytes - working;
        share.workingBytes += bytes - working;
        working = bytes;
      };
      return {
        grow(bytes) {
          if (!arrivals.has(arrival)) return false;
          arrival.bytes += bytes;
          all.arrivingBytes += bytes;
          share.arrivingBytes += bytes;
          makeRoom(arrival);
          return arrivals.has(arrival);
        },
        startWork(bytes) {
          if (!end(arrival) || !fits(share, bytes)) return false;
          take(bytes);
          return true;
        },
        shrink: (bytes) => take(Math.min(bytes, working)),
        release() {
          if (isReleased) return;
          isReleased = true;
          end(arrival);
          take(0);
          share.bodies -= 1;
          if (share.bodies === 0) shares.delete(client);
        },
      };
    },
  };
}
