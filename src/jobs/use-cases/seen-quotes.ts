/** The quotes whose payments this process has seen: the next payment on one of them may be a repetition. */
export interface SeenQuotes {
  has(digest: string): boolean;
  add(digest: string): void;
}

/** Of each half: at 2,000 payments a second, half a minute to a minute is remembered. */
const mostRemembered = 65_536;

/**
 * Remembers the latest quotes and forgets the others. A forgotten one costs a verification too many and nothing else: the append that
 * starts a payment decides.
 */
export function createSeenQuotes(most = mostRemembered): SeenQuotes {
  let latest = new Set<string>();
  let before = new Set<string>();
  return {
    has: (digest) => latest.has(digest) || before.has(digest),
    add(digest) {
      if (latest.size >= most) [before, latest] = [latest, new Set()];
      latest.add(digest);
    },
  };
}
