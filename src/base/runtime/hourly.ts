import { createBoundedCache } from '../values/bounded-cache.ts';

const maxKeys = 1_000;
const hourMs = 3_600_000;

/**
 * Whether something may be reported now: once an hour for each key, by this process.
 * @param nowMs a monotonic clock
 */
export function createHourly(nowMs: () => number = () => performance.now()): (key: string) => boolean {
  const lastMs = createBoundedCache<string, number>(maxKeys);
  return (key) => {
    const last = lastMs.get(key);
    if (last !== undefined && nowMs() < last + hourMs) return false;
    lastMs.set(key, nowMs());
    return true;
  };
}
