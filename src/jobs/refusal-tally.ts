import type { EventData } from '../domain/events/event.ts';
import type { SummedRefusal } from '../domain/events/request-events.ts';
import type { Lane } from '../store/lane.ts';

/** Refusals that are counted and not recorded one by one: over the budget, or while the lane is full. */
export interface RefusalTally {
  add(type: SummedRefusal): void;
  /** Records the sums since the last time in one event, whatever else waits for the lane. Nothing if there were none. */
  record(lane: Lane): Promise<void>;
}

const stream = 'refusals';

export function createRefusalTally(): RefusalTally {
  let counts = new Map<SummedRefusal, number>();
  const add = (type: SummedRefusal, count: number): void => {
    counts.set(type, (counts.get(type) ?? 0) + count);
  };
  return {
    add: (type) => add(type, 1),
    async record(lane) {
      if (counts.size === 0) return;
      const taken = counts;
      counts = new Map();
      const data: EventData<'refusals_counted'> = { counts: Object.fromEntries(taken) };
      try {
        await lane.append({ stream, events: [{ type: 'refusals_counted', data }] }, { urgent: true });
      } catch (error) {
        for (const [type, count] of taken) add(type, count);
        throw error;
      }
    },
  };
}
