import { setTimeout as sleep } from 'node:timers/promises';

/** Waits; false where `signal` aborted before. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}

/** Doubling waits, each somewhere in its upper half: runners that failed together do not come back together. */
export function backoffMs(failures: number, capMs: number): number {
  const ceiling = Math.min(capMs, firstWaitMs * 2 ** Math.min(failures, 20));
  return ceiling * (0.5 + Math.random() / 2);
}

const firstWaitMs = 200;
