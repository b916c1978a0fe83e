import { sha256 } from '../../base/values/sha256.ts';
import { currentRate, isSameRate } from '../../base/values/round.ts';
import { rateText } from '../../base/values/rate.ts';
import { type AcceptedToken, type Rate, tokenName } from '../../base/values/token.ts';
import type { KnownRound, RateName } from '../../payments/store/rate-rounds.ts';

/** The hash of what the configuration says of a token's rate: rounds of another configuration say nothing about this one. */
export function rateName(token: AcceptedToken): RateName {
  const { network, asset, rateTerms: terms, ratePerNativeUnit: fixed } = token;
  const bound = terms?.bound && [rateText(terms.bound.rate), terms.bound.bps];
  const said = terms ? { ...terms, bound } : { fixed: fixed && rateText(fixed) };
  return { network, asset, terms: Buffer.from(sha256(JSON.stringify(said)).slice(2), 'hex') };
}

/** The rates of a configuration's tokens after one reading of the rounds. */
export interface RateView {
  /** Of every token that has one, current or not: its prices change with it. */
  readonly rates: ReadonlyMap<string, Rate>;
  /** By token: the newest round of this configuration. */
  readonly rounds: ReadonlyMap<string, KnownRound>;
  readonly tokens: readonly AcceptedToken[];
}

function keyOf(name: RateName): string {
  return `${tokenName(name)}/${name.terms.toString('hex')}`;
}

export function viewRates(tokens: readonly AcceptedToken[], known: readonly KnownRound[]): RateView {
  const rates = new Map<string, Rate>();
  const rounds = new Map<string, KnownRound>();
  const byName = new Map(known.map((round) => [keyOf(round.name), round]));
  for (const token of tokens) {
    const round = byName.get(keyOf(rateName(token)));
    const rate = token.ratePerNativeUnit ?? round?.state.rate;
    if (rate) rates.set(tokenName(token), rate);
    if (round) rounds.set(tokenName(token), round);
  }
  return { rates, rounds, tokens };
}

/** Whether two readings have the same rates, so that all prices are the same. */
export function haveSameRates(a: RateView, b: RateView): boolean {
  return (
    a.rates.size === b.rates.size && [...a.rates].every(([name, rate]) => isSameRate(rate, b.rates.get(name)))
  );
}

/** The tokens of a view without a rate that may be offered at a time, and when that changes next by itself. */
export function withoutRate(
  { tokens, rounds }: RateView,
  nowSecs: number,
): { readonly names: ReadonlySet<string>; readonly untilSecs: number } {
  const names = new Set<string>();
  let untilSecs = Infinity;
  for (const token of tokens) {
    if (!token.rateTerms) continue;
    const state = rounds.get(tokenName(token))?.state;
    if (state && currentRate(state, token.rateTerms, nowSecs))
      untilSecs = Math.min(untilSecs, state.validUntilSecs ?? nowSecs);
    else names.add(tokenName(token));
  }
  return { names, untilSecs };
}

export type Rates = ReturnType<typeof createRates>;

/** The rates in force in this process. A rate ends by the database's clock, without any message. */
export function createRates(first: RateView, nowSecs: () => number) {
  let view = first;
  let known: ReadonlySet<string> = new Set();
  let untilSecs = -Infinity;
  return {
    nowSecs,
    view: (): RateView => view,
    /** Together with the prices that follow from it. */
    putInForce(next: RateView): void {
      view = next;
      untilSecs = -Infinity;
    },
    /** The tokens without a current rate, as `network/asset`: the same set while nothing changes. */
    missing(): ReadonlySet<string> {
      const now = nowSecs();
      if (now < untilSecs) return known;
      const found = withoutRate(view, now);
      ({ untilSecs } = found);
      if (found.names.symmetricDifference(known).size > 0) known = found.names;
      return known;
    },
  };
}

/** The rate of a token, for the operator. */
export interface RateStatus {
  readonly token: AcceptedToken;
  /** `SYMBOL on NETWORK`. */
  readonly name: string;
  /** `missing`: the token is not offered. `old`: a fixed rate has not been changed for longer than the operator allows. */
  readonly state: 'current' | 'missing' | 'old';
  /** Since the oldest of its sources was observed, or a fixed rate was seen first; undefined if it is not known. */
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
