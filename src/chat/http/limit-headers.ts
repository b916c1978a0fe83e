import type { LimitLeft, LimitState } from '../use-cases/answer.ts';

const minuteSecs = 60;
const daySecs = 86_400;

/**
 * What is left of a caller's limits, in two forms: `X-RateLimit-*`, for the limit that binds, and the IETF draft's headers, with
 * the minute and the day each by itself.
 * @param nowMs by the database's clock
 */
export function limitHeaders({ minute, day }: LimitState, nowMs: number): Readonly<Record<string, string>> {
  const windows: [string, number, LimitLeft][] = [['minute', minuteSecs, minute]];
  if (day) windows.push(['day', daySecs, day]);
  const bound = day && day.remaining <= minute.remaining ? day : minute;
  return {
    'x-ratelimit-limit': String(bound.limit),
    'x-ratelimit-remaining': String(bound.remaining),
    'x-ratelimit-reset': String(Math.floor(nowMs / 1_000) + bound.resetSecs),
    'ratelimit-policy': windows.map(([name, secs, { limit }]) => `"${name}";q=${limit};w=${secs}`).join(', '),
    ratelimit: windows
      .map(([name, , { remaining, resetSecs }]) => `"${name}";r=${remaining};t=${resetSecs}`)
      .join(', '),
  };
}
