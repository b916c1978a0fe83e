import { clientOf } from '../domain/values/client-address.ts';

/**
 * How many requests that were not paid one asker may make a minute. Counted by this process alone, in memory: it keeps
 * a stranger from filling the ledger for nothing, and decides about nobody's money.
 */
export interface Budget {
  /** Seconds to wait where any of these askers has spent its budget; undefined where there is room. */
  spent(askers: readonly string[]): number | undefined;
  /** Counts one request that did not reach `settlement_started`. */
  charge(askers: readonly string[]): void;
}

interface Window {
  minute: number;
  current: number;
  previous: number;
}

const maxAskers = 100_000;
const minuteMs = 60_000;

/** A sliding window of two counters an asker; the least recently charged are forgotten past 100,000. 0 is no limit. */
export function createBudget(perMinute: number, nowMs: () => number = Date.now): Budget {
  const windows = new Map<string, Window>();

  /** The asker's counters as of now: a window that is over counts as nothing. */
  const countsOf = (asker: string): { current: number; previous: number } => {
    const window = windows.get(asker);
    const minute = Math.floor(nowMs() / minuteMs);
    if (window?.minute === minute) return window;
    return { current: 0, previous: window?.minute === minute - 1 ? window.current : 0 };
  };

  /** Milliseconds until this asker has room: the earlier minute's share shrinks as the present one goes on. */
  const waitMs = (asker: string): number => {
    const { current, previous } = countsOf(asker);
    const elapsed = (nowMs() % minuteMs) / minuteMs;
    if (current + previous * (1 - elapsed) < perMinute) return 0;
    const roomAt = (share: number, others: number): number => Math.max(0, 1 - (perMinute - others) / share);
    const until = current < perMinute ? roomAt(previous, current) : 1 + roomAt(current, 0);
    return Math.max(1, (until - elapsed) * minuteMs);
  };

  const charge = (asker: string): void => {
    const minute = Math.floor(nowMs() / minuteMs);
    const { current, previous } = countsOf(asker);
    windows.delete(asker);
    windows.set(asker, { minute, current: current + 1, previous });
    if (windows.size > maxAskers) {
      const [eldest] = windows.keys();
      if (eldest !== undefined) windows.delete(eldest);
    }
  };

  return {
    spent(askers) {
      const longestMs = perMinute === 0 ? 0 : Math.max(0, ...askers.map(waitMs));
      // a moment past the edge, so that asking then finds room
      return longestMs > 0 ? Math.floor(longestMs / 1_000) + 1 : undefined;
    },
    charge(askers) {
      if (perMinute === 0) return;
      for (const asker of askers) charge(asker);
    },
  };
}

/** One asker's name from a client address: IPv6 clients own a /64, so they are counted by it. */
export function addressAsker(address: string): string {
  return clientOf(address, 64);
}

export function payerAsker(payer: string): string {
  return `payer:${payer}`;
}
