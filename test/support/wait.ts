import { vi } from 'vitest';

/** Repeats the assertion until it holds. Fails with its last error shortly before the test's own time-out. */
export function eventually<T>(assertion: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(assertion, { timeout: 50_000, interval: 10 });
}
