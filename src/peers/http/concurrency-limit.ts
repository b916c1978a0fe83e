/** Lets so many tasks run at once; the rest wait in line. */
export interface ConcurrencyLimit {
  /** Runs the task when there is room; undefined, without running it, when there was none for `waitMs`. */
  run<T>(waitMs: number, task: () => Promise<T>): Promise<T | undefined>;
}

export function createConcurrencyLimit(places: number): ConcurrencyLimit {
  let free = places;
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
  /** A place goes to the first in line, never past it. */
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
