/** What `within` gives if the promise has not settled in time. */
export const late = Symbol('late');

/** The outcome of the promise, or `late` after `timeoutMs`; the promise itself continues. */
export async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | typeof late> {
  const { promise: timedOut, resolve } = Promise.withResolvers<typeof late>();
  const timer = setTimeout(resolve, timeoutMs, late);
  try {
    return await Promise.race([promise, timedOut]);
  } finally {
    clearTimeout(timer);
  }
}
