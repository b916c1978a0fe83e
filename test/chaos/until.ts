import { setTimeout as sleep } from 'node:timers/promises';

/** How many milliseconds it took until the condition held; undefined where it did not hold in time. */
export async function until(
  withinMs: number,
  holds: () => boolean | Promise<boolean>,
  pollMs = 50,
): Promise<number | undefined> {
  const startedMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedMs > withinMs) return undefined;
    await sleep(pollMs);
  }
  return performance.now() - startedMs;
}

/** The same, where a condition that does not hold in time is an error. */
export async function mustHold(
  what: string,
  withinMs: number,
  holds: () => boolean | Promise<boolean>,
  pollMs?: number,
): Promise<void> {
  if ((await until(withinMs, holds, pollMs)) === undefined)
    throw new Error(`after ${withinMs} ms this does not hold: ${what}`);
}

/** Acts again and again until the signal aborts, with a pause after each time. */
export async function repeatUntil(
  over: AbortSignal,
  pauseMs: () => number,
  act: () => Promise<unknown>,
): Promise<void> {
  while (!over.aborted) {
    await act();
    await pause(pauseMs(), over);
  }
}

/** Waits, but not beyond the signal. */
export async function pause(ms: number, over: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: over }).catch(() => {});
}
