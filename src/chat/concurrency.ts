import type { ChatConfig } from '../config/config.ts';
import { type Caller, spendingOf } from './caller.ts';

/** The completions that run in this process, by who asked for them. */
export interface Concurrency {
  /**
   * Counts a completion against the key, the account and the client address that ask for it, those of free models also against
   * a lower limit. Undefined where one of them has as many as it may. The result ends the counting, once.
   */
  enter(
    caller: Caller,
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
    enter(caller, isFree, { maxConcurrentPerClient: max, maxConcurrentFreePerClient: maxFree }) {
      const subjects = subjectsOf(caller);
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

function subjectsOf(caller: Caller): string[] {
  const { account_id: account, key_id: key } = spendingOf(caller) ?? {};
  return [
    caller.client,
    ...(account === undefined ? [] : [`account:${account}`]),
    ...(key === undefined ? [] : [`key:${key}`]),
    ...(caller.kind === 'spend_auth' ? [`spend:${caller.spend.auth.commitment}`] : []),
  ];
}
