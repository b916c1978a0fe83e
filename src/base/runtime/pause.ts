import { setTimeout as sleep } from 'node:timers/promises';

/** Waits; false if `signal` aborted before. Never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, signal && { signal });
    return true;
  } catch {
    return false;
  }
}
