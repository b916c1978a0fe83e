import { postingOf } from '../domain/credit/postings.ts';
import type { Admission, CreditCommand, CreditDetail, CreditOutcome } from '../store/append-batch.ts';
import type { Lane } from '../store/lane.ts';
import { type Cache, createCache } from '../domain/values/bounded-cache.ts';

type Refusal = Extract<CreditOutcome, { outcome: 'refused' }>;

interface Remembered {
  readonly asked: Admission;
  readonly refusal: Refusal;
  /** When it was asked, before which the verdict cannot have been given. */
  readonly askedMs: number;
  readonly untilMs: number;
}

export type Limits = Pick<Admission, 'subject' | 'perMinute' | 'perDay'>;

export interface RefusalCachingLane extends Lane {
  /** How an admission would be refused, where its limit is known to be full. */
  findFullLimit(limits: Limits): Refusal | undefined;
}

const maxSubjects = 10_000;
const maxKeysOfAccount = 100;
/** Clocks do not drift apart in so short a time, and the ledger hears of who goes on for hours. */
const longestMs = 60_000;
const withoutCreditMs = 1_000;

/**
 * The lane, with what it refuses remembered for as long as that stays true: who asks again all the same is answered here, and
 * keeps nobody waiting. A limit that is full stays so until its oldest admission is old enough, whatever others do; what an
 * account lacks may come back at any time, so that is remembered for a second, and not past what this process gives back.
 * @param nowMs a clock that never jumps
 */
export function cacheRefusals(lane: Lane, nowMs: () => number): RefusalCachingLane {
  const full = createCache<string, Remembered>(maxSubjects);
  const short = createCache<number, Cache<string, Remembered>>(maxSubjects);

  /** Given up as a whole when credit comes back: what was asked before and is answered after goes with it. */
  const shortOf = (accountId: number): Cache<string, Remembered> => {
    const known = short.get(accountId) ?? createCache(maxKeysOfAccount);
    short.set(accountId, known);
    return known;
  };

  const recall = (asked: Admission): Refusal | undefined => {
    const known = [full.get(asked.subject), short.get(asked.accountId ?? 0)?.get(asked.subject)];
    const told = known.find((one) => one && nowMs() < one.untilMs && isAnswer(one, asked));
    return told && countDown(told.refusal, nowMs() - told.askedMs);
  };

  const ask = async (command: CreditCommand, asked: Admission, options?: { readonly urgent?: boolean }) => {
    const askedMs = nowMs();
    const ofAccount = asked.accountId === undefined ? undefined : shortOf(asked.accountId);
    const outcome = await lane.appendCredit(command, options);
    if (outcome.outcome === 'ok') return outcome;
    const remembered = { asked, refusal: outcome, askedMs };
    const { code, detail } = outcome;
    if (code === 'rate_limit_exceeded' || code === 'daily_quota_exceeded')
      full.set(asked.subject, {
        ...remembered,
        untilMs: askedMs + Math.min(detail.retry_ms ?? 0, longestMs),
      });
    if (code === 'insufficient_funds' || code === 'key_cap_reached')
      ofAccount?.set(asked.subject, { ...remembered, untilMs: askedMs + withoutCreditMs });
    return outcome;
  };

  const forget = ({ events }: CreditCommand): void => {
    for (const event of events) {
      const posting = postingOf(event);
      if (posting?.to === 'available') short.delete(posting.accountId);
    }
  };

  return {
    findFullLimit({ subject, perMinute, perDay }) {
      const known = full.get(subject);
      const isSame = known?.asked.perMinute === perMinute && known.asked.perDay === perDay;
      return known && isSame && nowMs() < known.untilMs
        ? countDown(known.refusal, nowMs() - known.askedMs)
        : undefined;
    },
    append: (command, options) => lane.append(command, options),
    async appendCredit(command, options) {
      const { admit } = command;
      if (admit) return recall(admit) ?? ask(command, admit, options);
      const outcome = await lane.appendCredit(command, options);
      if (outcome.outcome === 'ok') forget(command);
      return outcome;
    },
    refresh: () => lane.refresh(),
    get state() {
      return lane.state;
    },
    close: (graceMs) => lane.close(graceMs),
  };
}

/** Other limits may have been loaded since; who asks for less may have enough for it. */
function isAnswer({ asked: before, refusal }: Remembered, asked: Admission): boolean {
  const { available } = refusal.detail;
  return available == null
    ? before.perMinute === asked.perMinute && before.perDay === asked.perDay
    : asked.holdMicros > BigInt(available);
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
