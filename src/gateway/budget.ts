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

  const usedBy = (asker: string): number => {
    const window = windows.get(asker);
    if (!window) return 0;
    const minute = Math.floor(nowMs() / minuteMs);
    const share = 1 - (nowMs() % minuteMs) / minuteMs;
    if (window.minute === minute) return window.current + window.previous * share;
    return window.minute === minute - 1 ? window.current * share : 0;
  };

  const charge = (asker: string): void => {
    const minute = Math.floor(nowMs() / minuteMs);
    const old = windows.get(asker);
    const previous = !old
      ? 0
      : old.minute === minute
        ? old.previous
        : old.minute === minute - 1
          ? old.current
          : 0;
    const current = old?.minute === minute ? old.current + 1 : 1;
    windows.delete(asker);
    windows.set(asker, { minute, current, previous });
    if (windows.size > maxAskers) {
      const [eldest] = windows.keys();
      if (eldest !== undefined) windows.delete(eldest);
    }
  };

  return {
    spent(askers) {
      if (perMinute === 0 || askers.every((asker) => usedBy(asker) < perMinute)) return undefined;
      return Math.max(1, Math.ceil((minuteMs - (nowMs() % minuteMs)) / 1_000));
    },
    charge(askers) {
      if (perMinute === 0) return;
      for (const asker of askers) charge(asker);
    },
  };
}

/** One asker's name from a client address: IPv6 clients own a /64, so they are counted by it. */
export function addressAsker(ip: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1] ?? ip;
  if (!v4.includes(':')) return `ip:${v4}`;
  const [head = '', tail] = v4.split('%')[0]?.split('::') ?? [];
  const left = head.split(':').filter(Boolean);
  const right = tail?.split(':').filter(Boolean) ?? [];
  const groups = [
    ...left,
    ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'),
    ...right,
  ];
  return `ip:${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

export function payerAsker(payer: string): string {
  return `payer:${payer}`;
}
