import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';

/** One firing of a trigger, before it is on record. */
export interface NewFiring {
  /** What it is identified by: it makes one call, for ever. */
  readonly id: string;
  /** The call's body, JSON. */
  readonly body: string;
  /** Of a chain trigger alone. */
  readonly log?: ChainLog | undefined;
}

/** `known`: the ledger has the call already. `full`: nothing was recorded, because too many calls wait. */
export type FiringAnswer = 'recorded' | 'known' | 'full';

/** Records a firing as a call. Throws if the ledger cannot be written. */
export type Fire = (firing: NewFiring) => Promise<FiringAnswer>;

/** What became of the firings of this process, by trigger: `skipped` are missed times, `foreign` logs of another event. */
export type FiringOutcome = FiringAnswer | 'skipped' | 'foreign';

export type FiringCounts = ReturnType<typeof createFiringCounts>;

export function createFiringCounts() {
  const counts = new Map<string, { trigger: string; outcome: FiringOutcome; count: number }>();
  return {
    add(trigger: string, outcome: FiringOutcome, count = 1): void {
      const key = `${outcome} ${trigger}`;
      const known = counts.get(key) ?? { trigger, outcome, count: 0 };
      counts.set(key, { ...known, count: known.count + count });
    },
    all: () => [...counts.values()],
  };
}
