/** A value that one reader polls for all its followers, while there are any. */
export interface Broadcast<T> {
  /** The latest value, then each one that is read. Ends if the signal aborts, or when the process shuts down. */
  follow(signal: AbortSignal): AsyncGenerator<T, void>;
  /** How many follow now. */
  readonly followers: number;
}

interface BroadcastOptions {
  readonly everyMs: number;
  readonly isStopping: () => boolean;
  /** The next reading tries again. */
  readonly onFault: (fault: unknown) => void;
}

/** @param read never runs twice at the same time, and not at all without a follower */
export function createBroadcast<T>(
  read: () => Promise<T>,
  { everyMs, isStopping, onFault }: BroadcastOptions,
): Broadcast<T> {
  let next = Promise.withResolvers<T | undefined>();
  let latest: { readonly value: T; readonly atMs: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;
  let followers = 0;

  const tell = (value: T | undefined): void => {
    const told = next;
    next = Promise.withResolvers();
    told.resolve(value);
  };
  const look = async (): Promise<void> => {
    if (isStopping()) return tell(undefined);
    if (isReading) return;
    isReading = true;
    try {
      const value = await read();
      latest = { value, atMs: performance.now() };
      tell(value);
    } catch (fault) {
      onFault(fault);
    } finally {
      isReading = false;
    }
  };
  const isFresh = (): boolean => latest !== undefined && performance.now() - latest.atMs < everyMs;

  return {
    get followers() {
      return followers;
    },
    async *follow(signal) {
      const left = new Promise<undefined>((resolve) => {
        signal.addEventListener('abort', () => resolve(undefined), { once: true });
      });
      followers += 1;
      timer ??= setInterval(() => void look(), everyMs);
      try {
        let upcoming = next.promise;
        if (!isFresh()) void look();
        let value = isFresh() ? latest?.value : await Promise.race([upcoming, left]);
        while (value !== undefined && !signal.aborted) {
          upcoming = next.promise;
          yield value;
          value = await Promise.race([upcoming, left]);
        }
      } finally {
        followers -= 1;
        if (followers === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      }
    },
  };
}
