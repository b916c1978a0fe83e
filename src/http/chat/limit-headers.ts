import type { LimitState } from '../../chat/answer.ts';

const daySecs = 86_400;

/**
 * What is left of a caller's limits, in two forms: `X-RateLimit-*`, for what is allowed now and when more is, and the IETF
 * draft's headers, with every window by itself.
 * @param nowMs by the database's clock
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
