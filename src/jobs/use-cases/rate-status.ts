import { type AcceptedToken, tokenName } from '../../base/values/token.ts';
import type { KnownRound } from '../../payments/store/rate-rounds.ts';
import type { Rates } from './rates.ts';

/** The rate of a token, for the operator. */
export interface RateStatus {
  readonly token: AcceptedToken;
  /** `SYMBOL on NETWORK`. */
  readonly name: string;
  /** `missing`: the token is not offered. `old`: a fixed rate has not been changed for longer than the operator allows. */
  readonly state: 'current' | 'missing' | 'old';
  /** Since the oldest of its sources was observed, or a fixed rate was seen first; undefined where it is not known. */
  readonly ageSecs: number | undefined;
  readonly detail: string | undefined;
}

/** The rates in force, from what this process has read. */
export function rateStatus({ view, missing, nowSecs }: Rates): RateStatus[] {
  const [{ tokens, rounds }, unrated, now] = [view(), missing(), nowSecs()];
  return tokens.map((token) => {
    const { symbol, network, fixedRateMaxAgeSecs: maxAgeSecs } = token;
    const round = rounds.get(tokenName(token));
    const observedAt = round?.state.observedAtSecs;
    const ageSecs = observedAt === undefined ? undefined : Math.max(0, now - observedAt);
    const of = { token, name: `${symbol} on ${network}`, ageSecs };
    if (unrated.has(tokenName(token))) return { ...of, state: 'missing', detail: whyMissing(round) };
    if (maxAgeSecs !== undefined && ageSecs !== undefined && ageSecs > maxAgeSecs)
      return {
        ...of,
        state: 'old',
        detail: `the fixed rate is ${Math.floor(ageSecs)} s old, and ${maxAgeSecs} s are allowed`,
      };
    return { ...of, state: 'current', detail: undefined };
  });
}

function whyMissing(round: KnownRound | undefined): string {
  if (!round) return 'not offered: its sources were not asked yet';
  const problems = round.answers.flatMap(({ source, problem }) =>
    problem === undefined ? [] : [`${source}: ${problem}`],
  );
  const why = round.problem ?? 'too_old';
  return `not offered: no current rate (${[why, ...problems].join(', ')})`;
}
