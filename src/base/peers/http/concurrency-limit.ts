/** Limits how many tasks run simultaneously; the others queue. */
export interface ConcurrencyLimit {
  /** Runs the task when a slot is free; undefined, without running it, where none was free within `waitMs`. */
  run<T>(waitMs: number, task: () => Promise<T>): Promise<T | undefined>;
}

export function createConcurrencyLimit(slots: number): ConcurrencyLimit {
  let free = slots;
  const waiting = new Set<() => void>();

  const enter = (waitMs: number): Promise<boolean> => {
    if (free > 0) {
      free -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const admit = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        waiting.delete(admit);
        resolve(false);
      }, waitMs);
      waiting.add(admit);
    });
  };
  /** The slot goes to the first task in the queue. */
  const leave = (): void => {
    const [first] = waiting;
    if (first === undefined) free += 1;
    else {
      waiting.delete(first);
      first();
    }
  };

  return {
    async run(waitMs, task) {
      if (!(await enter(waitMs))) return undefined;
      try {
        return await task();
      } finally {
        leave();
      }
    },
  };
}
