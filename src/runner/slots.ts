import type { Job } from './job.ts';

/** Capacity for runs: a limit for the runner, and one for each job that sets its own. */
export interface Slots {
  /** Takes a slot if one is free. */
  tryTake(job: Job): boolean;
  /** Waits for one; false once `signal` aborts. */
  take(job: Job, signal: AbortSignal): Promise<boolean>;
  /** The run in it has ended. */
  release(job: Job): void;
  /** The run in it was given up, but has not ended. */
  abandon(job: Job): void;
  /** How many such runs there are. */
  abandoned(): number;
  /** A run that was given up has ended. */
  settle(): void;
  /** How many calls may be fetched. */
  free(): number;
  /** Resolves when a slot is free, or `signal` aborts. */
  untilFree(signal: AbortSignal): Promise<void>;
}

/** The most handlers that may ignore their abort signal, unless the runner's concurrency is higher. */
const leastAbandoned = 16;

export function createSlots(concurrency: number): Slots {
  const mostAbandoned = Math.max(leastAbandoned, concurrency);
  const runningByJob = new Map<Job, number>();
  const waiting = new Set<{ readonly job: Job; readonly grant: () => void }>();
  const watchers = new Set<() => void>();
  let running = 0;
  let abandoned = 0;

  const isFull = (): boolean => running >= concurrency || abandoned >= mostAbandoned;
  const hasRoom = (job: Job): boolean =>
    !isFull() && (runningByJob.get(job) ?? 0) < (job.concurrency ?? concurrency);
  const free = (): number => (isFull() ? 0 : Math.max(0, concurrency - running - waiting.size));
  const move = (job: Job, by: 1 | -1): void => {
    running += by;
    runningByJob.set(job, (runningByJob.get(job) ?? 0) + by);
  };
  const tryTake = (job: Job): boolean => {
    if (!hasRoom(job)) return false;
    move(job, 1);
    return true;
  };
  const grantWhatFits = (): void => {
    for (const waiter of waiting) {
      if (!tryTake(waiter.job)) continue;
      waiting.delete(waiter);
      waiter.grant();
    }
    if (free() > 0) for (const watcher of watchers) watcher();
  };

  return {
    tryTake,
    take(job, signal) {
      if (signal.aborted) return Promise.resolve(false);
      if (tryTake(job)) return Promise.resolve(true);
      return new Promise((resolve) => {
        const waiter = { job, grant: () => resolve(true) };
        waiting.add(waiter);
        const giveUp = (): void => {
          // granted meanwhile: then the slot is its own, and it gives it back
          if (!waiting.delete(waiter)) return;
          resolve(false);
          grantWhatFits();
        };
        signal.addEventListener('abort', giveUp, { once: true });
      });
    },
    release(job) {
      move(job, -1);
      grantWhatFits();
    },
    abandon(job) {
      move(job, -1);
      abandoned += 1;
      grantWhatFits();
    },
    abandoned: () => abandoned,
    settle() {
      abandoned -= 1;
      grantWhatFits();
    },
    free,
    untilFree(signal) {
      return new Promise((resolve) => {
        const watcher = (): void => {
          watchers.delete(watcher);
          signal.removeEventListener('abort', watcher);
          resolve();
        };
        if (free() > 0 || signal.aborted) return resolve();
        watchers.add(watcher);
        signal.addEventListener('abort', watcher);
      });
    },
  };
}
