/** Requests that wait for something to be there. However many wait for the same, one of them looks at a time. */
export interface SharedPolling<T> {
  /**
   * The finding of a look that this caller shares; nothing if `over` aborts first, or when the process shuts down.
   * @param key the same for callers that may share the findings
   */
  wait(key: string, look: () => Promise<readonly T[]>, over: AbortSignal): Promise<readonly T[]>;
  /** There may be something now. */
  lookAgain(): void;
}

interface Waiter<T> {
  readonly look: () => Promise<readonly T[]>;
  readonly over: AbortSignal;
  readonly resolve: (found: readonly T[]) => void;
  readonly reject: (fault: unknown) => void;
}

interface Group<T> {
  /** In their order, without the one that looks. */
  readonly waiting: Set<Waiter<T>>;
  readonly timer: NodeJS.Timeout;
  isLooking: boolean;
  /** Something may have come since the look began. */
  isWanted: boolean;
}

/** @param pollMs how often each group looks without a notification */
export function createSharedPolling<T>(pollMs: number, isStopping: () => boolean): SharedPolling<T> {
  const groups = new Map<string, Group<T>>();

  const want = (key: string, group: Group<T>): void => {
    group.isWanted = true;
    if (!group.isLooking) void run(key, group);
  };

  const open = (key: string): Group<T> => {
    const timer = setInterval(() => want(key, group), pollMs);
    const group: Group<T> = { waiting: new Set(), timer, isLooking: false, isWanted: false };
    groups.set(key, group);
    return group;
  };

  const run = async (key: string, group: Group<T>): Promise<void> => {
    group.isLooking = true;
    while (group.isWanted && group.waiting.size > 0) {
      group.isWanted = false;
      if (isStopping()) for (const waiter of group.waiting) end(group, waiter).resolve([]);
      await lookWhileFound(group);
    }
    group.isLooking = false;
    if (group.waiting.size > 0) return;
    clearInterval(group.timer);
    groups.delete(key);
  };

  return {
    wait(key, look, over) {
      return new Promise((resolve, reject) => {
        if (over.aborted || isStopping()) return resolve([]);
        const group = groups.get(key) ?? open(key);
        const waiter = { look, over, resolve, reject };
        group.waiting.add(waiter);
        over.addEventListener('abort', () => {
          // a caller that looks gets its findings
          if (group.waiting.delete(waiter)) resolve([]);
        });
        // rows that came between its own look and this moment
        want(key, group);
      });
    },
    lookAgain() {
      for (const [key, group] of groups) want(key, group);
    },
  };
}

/** One after another, until one finds nothing. */
async function lookWhileFound<T>(group: Group<T>): Promise<void> {
  for (const waiter of group.waiting) {
    end(group, waiter);
    try {
      const found = await waiter.look();
      if (found.length > 0 || waiter.over.aborted) waiter.resolve(found);
      else group.waiting.add(waiter);
      if (found.length === 0) return;
    } catch (fault) {
      // the others would have met it too
      for (const other of [waiter, ...group.waiting]) end(group, other).reject(fault);
      return;
    }
  }
}

function end<T>(group: Group<T>, waiter: Waiter<T>): Waiter<T> {
  group.waiting.delete(waiter);
  return waiter;
}
