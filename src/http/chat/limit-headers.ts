import type { LimitState } from '../../chat/answer.ts';

const daySecs = 86_400;

/**
 * Where a caller stands, twice: as most clients read it (`X-RateLimit-*`: what may be done now, and when there is more), and
 * as the IETF's draft says it, every window by itself.
 * @param nowMs by the clock that decides
 */
export function limitHeaders(limit: LimitState, nowMs: number): Readonly<Record<string, string>> {
  const { perMinute, remaining, resetSecs, day } = limit;
  const policies = [`"minute";q=${perMinute};w=60`];
  const states = [`"minute";r=${remaining};t=${resetSecs}`];
  if (day) {
    policies.push(`"day";q=${day.limit};w=${daySecs}`);
    states.push(`"day";r=${day.remaining};t=${day.resetSecs}`);
  }
  const untilMoreSecs = day?.remaining === 0 ? day.resetSecs : resetSecs;
  return {
    'x-ratelimit-limit': String(perMinute),
    'x-ratelimit-remaining': String(Math.min(remaining, day?.remaining ?? remaining)),
    'x-ratelimit-reset': String(Math.floor(nowMs / 1_000) + untilMoreSecs),
    'ratelimit-policy': policies.join(', '),
    ratelimit: states.join(', '),
  };
}
