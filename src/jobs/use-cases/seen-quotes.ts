/** Of each half: at 2,000 payments a second, half a minute to a minute is remembered. */
const mostRemembered = 65_536;

export type SeenQuotes = ReturnType<typeof createSeenQuotes>;

/**
 * The quotes whose payments this process has seen: the next payment on one of them may be a repetition. The latest are remembered. A forgotten one costs a verification too many and nothing else: the append that
 * starts a payment decides.
 */
export function createSeenQuotes(most = mostRemembered) {
  let latest = new Set<string>();
  let before = new Set<string>();
  return {
    has: (digest: string): boolean => latest.has(digest) || before.has(digest),
    add(digest: string): void {
      if (latest.size >= most) [before, latest] = [latest, new Set()];
      latest.add(digest);
    },
  };
}
