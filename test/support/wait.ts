import { vi } from 'vitest';

/** Asks again until the assertion holds. What never holds says what it lacked, just before the test's own time-out. */
export function eventually<T>(assertion: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(assertion, { timeout: 50_000, interval: 10 });
}
