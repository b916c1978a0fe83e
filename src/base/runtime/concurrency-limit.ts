/** Limits how many tasks run simultaneously; the others queue in the order in which they came. */
export interface ConcurrencyLimit {
  /** The outcome of the task, which begins when its turn comes. */
  take<T>(task: () => Promise<T>): Promise<T>;
  /** The same; undefined, without running it, where its turn did not come within `waitMs`. */
  run<T>(waitMs: number, task: () => Promise<T>): Promise<T | undefined>;
}

export function createConcurrencyLimit(slots: number): ConcurrencyLimit {
  let free = slots;
  const waiting = new Set<() => void>();

  const enter = (waitMs?: number): Promise<boolean> => {
    if (free > 0) {
      free -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const refuse = (): void => {
        waiting.delete(admit);
        resolve(false);
      };
      const timer = waitMs === undefined ? undefined : setTimeout(refuse, waitMs);
      const admit = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      waiting.add(admit);
    });
  };
  /** Its slot goes to the first task in the queue. */
  const finish = async <T>(task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } finally {
      const [first] = waiting;
      if (first === undefined) free += 1;
      else {
        waiting.delete(first);
        first();
      }
    }
  };

  return {
    async take(task) {
      await enter();
      return finish(task);
    },
    run: async (waitMs, task) => ((await enter(waitMs)) ? finish(task) : undefined),
  };
}
