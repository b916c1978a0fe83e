import { createBoundedCache } from '../values/bounded-cache.ts';
import { clientOf } from '../values/client-address.ts';

/**
 * Limits the requests per minute that reach no settlement and no completion, per client address and per payer. Counted in
 * memory only by this process: it keeps clients from filling the ledger for free and decides about no money.
 */
export interface Budget {
  /** Whole seconds until none of these keys has spent its budget; 0 if none has. */
  waitSecs(keys: readonly string[]): number;
  /** Counts one request that did not reach `settlement_started`. */
  charge(keys: readonly string[]): void;
  /** Begins the charge of one request. */
  open(): Charge;
}

/**
 * What one request is charged, from its first step on: were it charged with its answer, requests that arrive together would
 * all find their budget unspent.
 */
export interface Charge {
  /** Charges the request to this key, once: as this many requests, or as a tenth of them if the key's budget is spent. */
  take(key: string, requests?: number): void;
  /** Whole seconds until no taken key's budget is spent; 0 if the request is within all of them. */
  waitSecs(): number;
  /** The request reached `settlement_started`, or only repeated one that did: it no longer counts. */
  refund(): void;
  /** The payment failed after all, or its outcome is not known. */
  chargeAgain(): void;
  /** The refused request cost as much as this number of further requests. */
  chargeMore(requests: number): void;
}

interface Window {
  minute: number;
  current: number;
  previous: number;
}

const maxKeys = 100_000;
const minuteMs = 60_000;
/** Windows count in tenths of a request: so much does one cost that is refused because its budget is spent. */
const tenthsOfRequest = 10;

/**
 * A sliding window of two counters per key. Beyond 100,000 keys the least recently charged is dropped. A refused request costs a tenth, so
 * that a client that sends ten times as much as it may gets nothing until it slows down; one that waits as long as the answer says is served again.
 * @param perMinute 0 for no limit
 */
export function createBudget(perMinute: number, nowMs: () => number = Date.now): Budget {
  const windows = createBoundedCache<string, Window>(maxKeys);
  const maxTenths = perMinute * tenthsOfRequest;
  /** What a minute counts at most of refused requests: a client that stops is served again half a minute after it. */
  const maxOfRefused = 2 * maxTenths;

  /** The counters of a key now: a window that has ended counts as zero. */
  const countsOf = (key: string): { current: number; previous: number } => {
    const window = windows.get(key);
    const minute = Math.floor(nowMs() / minuteMs);
    if (window?.minute === minute) return window;
    return { current: 0, previous: window?.minute === minute - 1 ? window.current : 0 };
  };

  /** Milliseconds until a key is below its limit: the earlier minute's share shrinks during the present one. */
  const waitMs = (key: string): number => {
    const { current, previous } = countsOf(key);
    const elapsed = (nowMs() % minuteMs) / minuteMs;
    if (current + previous * (1 - elapsed) < maxTenths) return 0;
    const freeAt = (share: number, others: number): number => Math.max(0, 1 - (maxTenths - others) / share);
    const until = current < maxTenths ? freeAt(previous, current) : 1 + freeAt(current, 0);
    return Math.max(1, (until - elapsed) * minuteMs);
  };

  /** Counts in the present minute. */
  const charge = (key: string, tenths: number): Charged => {
    const minute = Math.floor(nowMs() / minuteMs);
    const { current, previous } = countsOf(key);
    windows.set(key, { minute, current: current + tenths, previous });
    return { minute, tenths };
  };
  const chargeRefused = (key: string, requests: number): Charged =>
    charge(key, Math.max(0, Math.min(requests, maxOfRefused - countsOf(key).current)));
  const refund = (key: string, { minute, tenths }: Charged): void => {
    const window = windows.get(key);
    // dropped meanwhile, for another key
    if (!window) return;
    if (window.minute === minute) window.current = Math.max(0, window.current - tenths);
    else if (window.minute === minute + 1) window.previous = Math.max(0, window.previous - tenths);
  };
  const waitSecs = (keys: readonly string[]): number => {
    const longestMs = perMinute === 0 ? 0 : Math.max(0, ...keys.map(waitMs));
    // rounded up past the edge, so that a request after this wait is below the limit
    return longestMs > 0 ? Math.floor(longestMs / 1_000) + 1 : 0;
  };

  return {
    waitSecs,
    open: () => openCharge({ waitSecs, charge, chargeRefused, refund }, perMinute > 0),
    charge(keys) {
      if (perMinute === 0) return;
      for (const key of keys) charge(key, tenthsOfRequest);
    },
  };
}

/** What a window counted, and in which minute. */
interface Charged {
  readonly minute: number;
  readonly tenths: number;
}

interface Counting {
  waitSecs(keys: readonly string[]): number;
  charge(key: string, tenths: number): Charged;
  /** A tenth for each of these requests, as far as the minute still counts refused ones. */
  chargeRefused(key: string, requests: number): Charged;
  refund(key: string, charged: Charged): void;
}

function openCharge({ waitSecs, charge, chargeRefused, refund }: Counting, isLimited: boolean): Charge {
  const taken = new Map<string, Charged>();
  let isRefunded = false;
  let longestSecs = 0;
  return {
    take(key, requests = 1) {
      if (!isLimited || taken.has(key)) return;
      if (waitSecs([key]) === 0) {
        taken.set(key, charge(key, requests * tenthsOfRequest));
        return;
      }
      taken.set(key, chargeRefused(key, requests));
      longestSecs = Math.max(longestSecs, waitSecs([key]));
    },
    waitSecs: () => longestSecs,
    refund() {
      if (isRefunded) return;
      isRefunded = true;
      for (const [key, charged] of taken) refund(key, charged);
    },
    chargeAgain() {
      if (!isRefunded) return;
      isRefunded = false;
      for (const [key, { tenths }] of taken) taken.set(key, charge(key, tenths));
    },
    chargeMore(requests) {
      for (const key of taken.keys()) charge(key, requests * tenthsOfRequest);
    },
  };
}

const bytesOfOneRequest = 16_384;

/** To read and check a body of so many bytes costs as much as this number of further requests. */
export function requestsOfBytes(bytes: number): number {
  return Math.floor(bytes / bytesOfOneRequest);
}

/** The budget key of a client address: an IPv6 client owns a /64, so it is counted by that. */
export function addressBudgetKey(address: string): string {
  return clientOf(address);
}

export function payerBudgetKey(payer: string): string {
  return `payer:${payer}`;
}
