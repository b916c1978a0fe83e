/** Promises that have not settled yet, so that a shutdown can wait for them. */
export interface PromiseTracker {
  readonly size: number;
  /** Tracks a promise until it settles, and returns it. Its rejection is for the caller to handle. */
  add<T>(promise: Promise<T>): Promise<T>;
  /** Resolves when those tracked now have settled. Never rejects. */
  settled(): Promise<void>;
  /** Resolves when none is left, those added meanwhile included. Never rejects. */
  drained(): Promise<void>;
}

export function createPromiseTracker(): PromiseTracker {
  const running = new Set<Promise<unknown>>();
  const settled = async (): Promise<void> => void (await Promise.allSettled(running));
  return {
    get size() {
      return running.size;
    },
    add(promise) {
      running.add(promise);
      const remove = (): boolean => running.delete(promise);
      promise.then(remove, remove);
      return promise;
    },
    settled,
    async drained() {
      while (running.size > 0) await settled();
    },
  };
}
