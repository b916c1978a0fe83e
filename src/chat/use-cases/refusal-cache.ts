import type {
  Admission,
  CreditCommand,
  CreditDetail,
  CreditOutcome,
  RateLimit,
} from '../../ledger/store/append-batch.ts';
import { type AppendOptions, type Lane, overlayLane } from '../../ledger/store/lane.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';

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
/** Short, so that clock drift does not matter and the ledger still sees clients that repeat for hours. */
const longestMs = 60_000;

/**
 * A lane that caches the refusals of full limits while they stay true, so that a client that repeats a refused request does not load
 * the ledger. A full limit stays full until its oldest admission leaves the window, so its refusal is cached until then, up to
 * `longestMs`. A lack of credit is not cached: the ledger counts it until a limit is full.
 * @param nowMs a monotonic clock
 */
export function cacheRefusals(lane: Lane, nowMs: () => number): RefusalCachingLane {
  const full = createBoundedCache<string, CachedRefusal>(maxSubjects);

  const findFull = (limits: Limits): Refusal | undefined => {
    for (const limit of limitsIn(limits)) {
      const known = full.get(limit.subject);
      if (known && nowMs() < known.untilMs && isSameLimit(known.request, limit))
        return countDown(known.refusal, nowMs() - known.requestedMs);
    }
    return undefined;
  };

  const admit = async (command: CreditCommand, request: Admission, options?: AppendOptions) => {
    const requestedMs = nowMs();
    const outcome = await lane.appendCredit(command, options);
    if (outcome.outcome === 'ok') return outcome;
    const { code, detail } = outcome;
    if (code === 'rate_limit_exceeded' || code === 'daily_quota_exceeded')
      full.set(detail.full_subject ?? request.subject, {
        request,
        // a repetition is counted in no sum
        refusal: { ...outcome, detail: { ...detail, is_summed: false } },
        requestedMs,
        untilMs: requestedMs + Math.min(detail.retry_ms ?? 0, longestMs),
      });
    return outcome;
  };

  const caching = overlayLane(lane, {
    async appendCredit(command, options) {
      const { admit: request } = command;
      if (!request) return lane.appendCredit(command, options);
      return findFull(request) ?? admit(command, request, options);
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
