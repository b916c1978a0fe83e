import type { EventData } from '../domain/events/event.ts';
import { createBoundedCache } from '../domain/values/bounded-cache.ts';
import type { Lane } from '../store/lane.ts';

/** Records for the operator that an upstream reports usage that cannot be true. */
export type UsageAlert = (data: EventData<'operator_usage_implausible'>) => Promise<void>;

const stream = 'operator:upstreams';
const maxPlaces = 1_000;
/** A broken upstream would be reported for every completion otherwise. */
const onceInMs = 3_600_000;

/**
 * At most one record an hour for an upstream and its model, by this process.
 * @param nowMs a monotonic clock
 */
export function createUsageAlert(lane: Pick<Lane, 'append'>, nowMs: () => number): UsageAlert {
  const lastMs = createBoundedCache<string, number>(maxPlaces);
  return async (data) => {
    const place = `${data.upstream} ${data.model}`;
    const last = lastMs.get(place);
    if (last !== undefined && nowMs() < last + onceInMs) return;
    lastMs.set(place, nowMs());
    await lane.append({ stream, events: [{ type: 'operator_usage_implausible', data }] }, { urgent: true });
  };
}
