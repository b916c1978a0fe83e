export type QuoteRate = ReturnType<typeof createQuoteRate>;

/**
 * Limits the quotes of one process to all clients together, if each is an event that the ledger keeps for good: a bucket that holds one
 * second's worth of quotes and is refilled steadily.
 * @param perSecond 0 for no limit
 */
export function createQuoteRate(perSecond: number) {
  let left = perSecond;
  let filledAt = performance.now();
  return {
    /** Whether one more quote may be issued now; counts it if so. */
    take(): boolean {
      if (perSecond === 0) return true;
      const now = performance.now();
      left = Math.min(perSecond, left + ((now - filledAt) * perSecond) / 1_000);
      filledAt = now;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
