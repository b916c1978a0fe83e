import { createRotation } from '../../base/values/rotation.ts';

/** Does work for clients in turn: each that waits gets the same share, however much it asks for. */
export interface FairQueue {
  /**
   * The outcome of the work, once it is this client's turn. Where work finds a shortage, it is done again when the shortage may be over; the
   * outcome is a shortage if that took too long. Undefined if this client's work already fills the queue.
   * @param work never rejects
   */
  take<T>(
    client: string,
    work: () => Promise<T>,
    isShortage: (outcome: T) => boolean,
  ): Promise<T | undefined>;
}

export interface FairQueueLimits {
  /** Tasks that run simultaneously. */
  readonly atOnce: number;
  /** Work of one client that waits for its turn. */
  readonly waitingOfClient: number;
  /** How long work may find shortages. */
  readonly patienceMs: number;
}

/** How long after a shortage the next one in turn looks again. */
const pauseMs = 100;

export function createFairQueue({ atOnce, waitingOfClient, patienceMs }: FairQueueLimits): FairQueue {
  const waiting = createRotation<() => void>();
  let running = 0;
  let pause: NodeJS.Timeout | undefined;

  const startNext = (): void => {
    while (running < atOnce && pause === undefined) {
      const start = waiting.next();
      if (!start) return;
      running += 1;
      start();
    }
  };
  const beginPause = (): void => {
    pause ??= setTimeout(() => {
      pause = undefined;
      startNext();
    }, pauseMs);
  };
  const turn = (client: string, isFirst: boolean): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (isFirst) waiting.addFirst(client, resolve);
    else waiting.add(client, resolve);
    startNext();
    return promise;
  };

  return {
    async take(client, work, isShortage) {
      if (waiting.countOf(client) >= waitingOfClient) return undefined;
      const untilMs = performance.now() + patienceMs;
      for (let isFirst = false; ; isFirst = true) {
        await turn(client, isFirst);
        const outcome = await work();
        running -= 1;
        const isShort = isShortage(outcome);
        if (isShort) beginPause();
        else startNext();
        if (!isShort || performance.now() >= untilMs) return outcome;
      }
    },
  };
}
