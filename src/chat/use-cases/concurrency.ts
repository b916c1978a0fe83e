import type { ChatConfig } from '../../base/config/config.ts';

/** The completions that run in this process, by who asked for them. */
export interface Concurrency {
  /**
   * Counts a completion against each of the subjects that ask for it, those of free models also against a lower limit. Undefined where one of them has as many as it may. The result ends the counting, once.
   */
  enter(
    subjects: readonly string[],
    isFree: boolean,
    limits: Pick<ChatConfig, 'maxConcurrentPerClient' | 'maxConcurrentFreePerClient'>,
  ): (() => void) | undefined;
}

export function createConcurrency(): Concurrency {
  const counts = new Map<string, number>();
  const add = (subject: string, change: 1 | -1): void => {
    const count = (counts.get(subject) ?? 0) + change;
    if (count > 0) counts.set(subject, count);
    else counts.delete(subject);
  };
  return {
    enter(subjects, isFree, { maxConcurrentPerClient: max, maxConcurrentFreePerClient: maxFree }) {
      const free = isFree ? subjects.map((subject) => `free ${subject}`) : [];
      const isFull =
        subjects.some((subject) => (counts.get(subject) ?? 0) >= max) ||
        free.some((subject) => (counts.get(subject) ?? 0) >= maxFree);
      if (isFull) return undefined;
      let all = [...subjects, ...free];
      for (const subject of all) add(subject, 1);
      return () => {
        for (const subject of all) add(subject, -1);
        all = [];
      };
    },
  };
}
