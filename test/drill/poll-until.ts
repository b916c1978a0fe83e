import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 200;

/** How long it took until the condition held; undefined if it did not hold in time. */
export async function pollUntil(
  withinMs: number,
  holds: () => Promise<boolean>,
): Promise<number | undefined> {
  const startedMs = performance.now();
  for (;;) {
    if (await holds()) return performance.now() - startedMs;
    if (performance.now() - startedMs > withinMs) return undefined;
    await sleep(pollMs);
  }
}
