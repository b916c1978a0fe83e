/** Does pieces of work in the order in which they came, a few at a time. */
export interface ConcurrencyLimit {
  /** The outcome of the work, which begins when its turn comes. */
  take<T>(work: () => Promise<T>): Promise<T>;
}

/** @param atOnce how much work is done at the same time */
export function createConcurrencyLimit(atOnce: number): ConcurrencyLimit {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return {
    async take(work) {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => void waiting.push(resolve));
      try {
        return await work();
      } finally {
        // the turn passes on
        const next = waiting.shift();
        if (next) next();
        else free++;
      }
    },
  };
}
