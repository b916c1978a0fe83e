/**
 * The transactions of the harness and its facilitator, and reorgs: a transaction that is replaced before its sender has seen it would
 * be waited for in vain, or taken for one that was never sent.
 */
export interface ChainGate {
  /** Sends a transaction, not during a reorg. */
  send<T>(transaction: () => Promise<T>): Promise<T>;
  /** Waits for the transactions that are under way, and does this while there are no others. */
  closedFor<T>(action: () => Promise<T>): Promise<T>;
}

export function createChainGate(): ChainGate {
  const underWay = new Set<Promise<unknown>>();
  let closed: Promise<unknown> = Promise.resolve();
  return {
    async send(transaction) {
      await closed;
      const sent = transaction();
      underWay.add(sent);
      try {
        return await sent;
      } finally {
        underWay.delete(sent);
      }
    },
    closedFor(action) {
      const result = (async () => {
        await Promise.allSettled(underWay);
        return action();
      })();
      closed = result.catch(() => undefined);
      return result;
    },
  };
}
