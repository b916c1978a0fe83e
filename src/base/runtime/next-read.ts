/**
 * Shares reads that must not be older than the question: each caller gets the outcome of a read that began after it asked. Those who ask
 * while one runs share the next, so that one runs at a time, however many ask.
 */
export function createNextRead<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    const begun = read().finally(() => {
      if (running === begun) running = undefined;
    });
    running = begun;
    return begun;
  };
  return () => {
    if (!running) return begin();
    const beginNext = (): Promise<T> => {
      next = undefined;
      return begin();
    };
    return (next ??= running.then(beginNext, beginNext));
  };
}
