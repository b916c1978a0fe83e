/** What this process asks the ledger to hold, by account, until it is answered: requests that arrive together leave credit for each other. */
export interface AskedHolds {
  of(accountId: number): bigint;
  /** Counts the amount while `ask` runs. */
  during<T>(accountId: number, micros: bigint, ask: () => Promise<T>): Promise<T>;
}

export function createAskedHolds(): AskedHolds {
  const asked = new Map<number, bigint>();
  const of = (accountId: number): bigint => asked.get(accountId) ?? 0n;
  return {
    of,
    async during(accountId, micros, ask) {
      asked.set(accountId, of(accountId) + micros);
      try {
        return await ask();
      } finally {
        const rest = of(accountId) - micros;
        if (rest === 0n) asked.delete(accountId);
        else asked.set(accountId, rest);
      }
    },
  };
}
