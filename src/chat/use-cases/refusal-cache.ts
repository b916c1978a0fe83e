import { postingOf } from '../../accounts/rules/credit/postings.ts';
import type {
  Admission,
  CreditCommand,
  CreditDetail,
  CreditOutcome,
  RateLimit,
} from '../../ledger/store/append-batch.ts';
import { type AppendOptions, type Lane, overlayLane } from '../../ledger/store/lane.ts';
import { type BoundedCache, createBoundedCache } from '../../base/values/bounded-cache.ts';

type Refusal = Extract<CreditOutcome, { outcome: 'refused' }>;

interface CachedRefusal {
  readonly request: Admission;
  readonly refusal: Refusal;
  /** When the request was sent: the ledger decided at this time or later. */
  readonly requestedMs: number;
  readonly untilMs: number;
}

export type Limits = Pick<Admission, 'subject' | 'perMinute' | 'perDay' | 'others'>;

export interface RefusalCachingLane extends Lane {
  /** The refusal of an admission whose limit is known to be full. */
  findFullLimit(limits: Limits): Refusal | undefined;
}

const maxSubjects = 10_000;
const maxKeysOfAccount = 100;
/** Short, so that clock drift does not matter and the ledger still sees clients that repeat for hours. */
const longestMs = 60_000;
const withoutCreditMs = 1_000;

/**
 * A lane that caches its refusals while they stay true, so that a client that repeats a refused request does not load the
 * ledger. A full limit stays full until its oldest admission leaves the window, so its refusal is cached until then, up to
 * `longestMs`. Credit may return at any time, so a lack of it is cached for a second, and dropped when this process returns
 * credit to the account.
 * @param nowMs a monotonic clock
 */
export function cacheRefusals(lane: Lane, nowMs: () => number): RefusalCachingLane {
  const full = createBoundedCache<string, CachedRefusal>(maxSubjects);
  const short = createBoundedCache<number, BoundedCache<string, CachedRefusal>>(maxSubjects);

  /** Dropped as a whole when credit returns, so that a request sent before that cannot cache its refusal after it. */
  const shortOf = (accountId: number): BoundedCache<string, CachedRefusal> => {
    const known = short.get(accountId) ?? createBoundedCache(maxKeysOfAccount);
    short.set(accountId, known);
    return known;
  };

  const findFull = (limits: Limits): Refusal | undefined => {
    for (const limit of limitsIn(limits)) {
      const known = full.get(limit.subject);
      if (known && nowMs() < known.untilMs && isSameLimit(known.request, limit))
        return countDown(known.refusal, nowMs() - known.requestedMs);
    }
    return undefined;
  };

  const findCached = (request: Admission): Refusal | undefined => {
    const known = findFull(request);
    // where every request counts, a lack of credit is counted by the ledger until a limit is full
    if (known || request.countsRequests) return known;
    const found = short.get(request.accountId ?? 0)?.get(request.subject);
    // a smaller hold may be covered; one that the caller makes smaller follows what is available now
    return found &&
      nowMs() < found.untilMs &&
      (request.leastMicros ?? request.holdMicros) > BigInt(found.refusal.detail.available ?? 0)
      ? countDown(found.refusal, nowMs() - found.requestedMs)
      : undefined;
  };

  const admit = async (command: CreditCommand, request: Admission, options?: AppendOptions) => {
    const requestedMs = nowMs();
    const ofAccount = request.accountId === undefined ? undefined : shortOf(request.accountId);
    const outcome = await lane.appendCredit(command, options);
    if (outcome.outcome === 'ok') return outcome;
    // a repetition is counted in no sum
    const refusal = { ...outcome, detail: { ...outcome.detail, is_summed: false } };
    const cached = { request, refusal, requestedMs };
    const { code, detail } = outcome;
    if (code === 'rate_limit_exceeded' || code === 'daily_quota_exceeded')
      full.set(detail.full_subject ?? request.subject, {
        ...cached,
        untilMs: requestedMs + Math.min(detail.retry_ms ?? 0, longestMs),
      });
    if (code === 'insufficient_funds' || code === 'key_cap_reached' || code === 'key_budget_reached')
      ofAccount?.set(request.subject, { ...cached, untilMs: requestedMs + withoutCreditMs });
    return outcome;
  };

  const dropReturned = ({ events }: CreditCommand): void => {
    for (const event of events) {
      const posting = postingOf(event);
      if (posting?.to === 'available') short.delete(posting.accountId);
    }
  };

  const caching = overlayLane(lane, {
    async appendCredit(command, options) {
      const { admit: request } = command;
      if (request) return findCached(request) ?? admit(command, request, options);
      const outcome = await lane.appendCredit(command, options);
      if (outcome.outcome === 'ok') dropReturned(command);
      return outcome;
    },
  });
  return Object.assign(caching, { findFullLimit: findFull });
}

function limitsIn({ subject, perMinute, perDay, others = [] }: Limits): readonly RateLimit[] {
  return [{ subject, perMinute, perDay }, ...others];
}

/** A reload may have changed the limits. */
function isSameLimit(before: Limits, limit: RateLimit): boolean {
  const same = limitsIn(before).find(({ subject }) => subject === limit.subject);
  return same?.perMinute === limit.perMinute && same.perDay === limit.perDay;
}

function countDown({ detail, ...refusal }: Refusal, passedMs: number): Refusal {
  const less = (ms: number | null | undefined) => (ms == null ? null : Math.max(0, ms - passedMs));
  const left: CreditDetail = {
    ...detail,
    reset_ms: less(detail.reset_ms),
    reset_today_ms: less(detail.reset_today_ms),
    retry_ms: less(detail.retry_ms),
  };
  return { ...refusal, detail: left };
}
