/** Lands the spends of one account one after another, the lowest nonce first. Orders this process only; the chain decides. */
export interface SpendQueue {
  /**
   * Resolves when it is this nonce's turn, with a function that ends the turn. Undefined immediately when too many spends of the
   * account wait.
   */
  enter(commitment: string, nonce: bigint): Promise<(() => void) | undefined>;
}

interface Waiting {
  readonly nonce: bigint;
  readonly begin: () => void;
}

export function createSpendQueue(maxWaiting: number): SpendQueue {
  /** By account with a spend that is landing: its waiting spends. */
  const waiting = new Map<string, Waiting[]>();

  const leave = (commitment: string): void => {
    const others = waiting.get(commitment) ?? [];
    const next = others.toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1))[0];
    if (!next) return void waiting.delete(commitment);
    others.splice(others.indexOf(next), 1);
    next.begin();
  };
  const turnOf = (commitment: string): (() => void) => {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      leave(commitment);
    };
  };

  return {
    enter(commitment, nonce) {
      const others = waiting.get(commitment);
      if (!others) {
        waiting.set(commitment, []);
        return Promise.resolve(turnOf(commitment));
      }
      if (others.length >= maxWaiting) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        others.push({ nonce, begin: () => resolve(turnOf(commitment)) });
      });
    },
  };
}
