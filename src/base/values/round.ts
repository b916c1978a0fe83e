import type { Rate, RateTerms } from './token.ts';
import { compareRates, isWithinBps, medianRate } from './rate.ts';

/** Why a source gave no rate that can be used. */
export const rateProblems = [
  'unreachable',
  'malformed',
  'too_large',
  'wrong_chain',
  'not_positive',
  'not_complete',
  'too_old',
  'in_the_future',
  'sequencer_down',
  'too_far_off',
] as const;
export type RateProblem = (typeof rateProblems)[number];

/** A source's answer. Times are Unix seconds of its own clock or its chain's. */
export type SourceAnswer =
  | { readonly kind: 'rate'; readonly rate: Rate; readonly observedAtSecs: number }
  | { readonly kind: 'problem'; readonly problem: RateProblem };

/** What a round keeps of one source. */
export interface JudgedAnswer {
  readonly name: string;
  readonly rate?: Rate;
  readonly observedAtSecs?: number;
  readonly problem?: RateProblem;
}

/** Why a round found no rate. */
export type RoundProblem = 'too_few_sources' | 'sources_disagree' | 'out_of_bounds';

export type Round = { readonly answers: readonly JudgedAnswer[] } & (
  | {
      readonly kind: 'rate';
      readonly rate: Rate;
      readonly observedAtSecs: number;
      readonly validUntilSecs: number;
    }
  | { readonly kind: 'problem'; readonly problem: RoundProblem }
);

/** How far a source's clock may be ahead of the database's. */
const maxAheadSecs = 60;
/** A source whose rate ends sooner is left out where enough others remain: its end would end the round. */
const leastLeftSecs = 5;

interface Current {
  readonly name: string;
  readonly rate: Rate;
  readonly observedAtSecs: number;
  readonly endsAtSecs: number;
}

/**
 * The rate of a round: the median of the sources that are recent and not far from the median of all recent ones. There must be enough
 * of them, and more of them than of the others, or the sources disagree. The round ends with the first of its sources.
 */
export function judgeRound(terms: RateTerms, said: readonly SourceAnswer[], nowSecs: number): Round {
  const judged = said.map((answer, index) => judgeAge(terms, index, answer, nowSecs));
  const recent = judged.flatMap(({ current }) => current ?? []);
  const answers = judged.map(({ answer }) => answer);
  const lasting = recent.filter(({ endsAtSecs }) => endsAtSecs >= nowSecs + leastLeftSecs);
  const taken = lasting.length >= terms.minSources ? lasting : recent;
  const middle = medianRate(taken.map(({ rate }) => rate));
  if (!middle || taken.length < terms.minSources)
    return { kind: 'problem', problem: 'too_few_sources', answers };
  const near = taken.filter(({ rate }) => isWithinBps(rate, middle, terms.maxDeviationBps));
  const names = new Set(near.map(({ name }) => name));
  const marked = answers.map((answer) =>
    answer.problem === undefined && taken.some(({ name }) => name === answer.name) && !names.has(answer.name)
      ? { ...answer, problem: 'too_far_off' as const }
      : answer,
  );
  const rate = medianRate(near.map((one) => one.rate));
  if (!rate || near.length < terms.minSources || near.length * 2 <= taken.length)
    return { kind: 'problem', problem: 'sources_disagree', answers: marked };
  if (terms.bound && !isWithinBps(rate, terms.bound.rate, terms.bound.bps))
    return { kind: 'problem', problem: 'out_of_bounds', answers: marked };
  return {
    kind: 'rate',
    rate,
    observedAtSecs: Math.min(...near.map(({ observedAtSecs }) => observedAtSecs)),
    validUntilSecs: Math.min(nowSecs + terms.maxAgeSecs, ...near.map(({ endsAtSecs }) => endsAtSecs)),
    answers: marked,
  };
}

function judgeAge(
  { sources }: RateTerms,
  index: number,
  said: SourceAnswer,
  nowSecs: number,
): { readonly answer: JudgedAnswer; readonly current?: Current } {
  const { name = '', maxAgeSecs = 0 } = sources[index] ?? {};
  if (said.kind === 'problem') return { answer: { name, problem: said.problem } };
  const { rate, observedAtSecs } = said;
  const answer = { name, rate, observedAtSecs };
  const endsAtSecs = observedAtSecs + maxAgeSecs;
  if (observedAtSecs > nowSecs + maxAheadSecs) return { answer: { ...answer, problem: 'in_the_future' } };
  if (endsAtSecs <= nowSecs) return { answer: { ...answer, problem: 'too_old' } };
  return { answer, current: { name, rate, observedAtSecs, endsAtSecs } };
}

/** What is in force of a token's rate; no rate before the first round that found one. */
export interface RateState {
  readonly rate: Rate | undefined;
  readonly observedAtSecs: number | undefined;
  readonly validUntilSecs: number | undefined;
}

/**
 * The outcome of a round. Sources that disagree end the rate immediately: one of them is wrong, and it may be the one that the rate is
 * from. Sources that do not answer leave it to its age.
 */
export function afterRound(before: RateState, round: Round, nowSecs: number): RateState {
  if (round.kind === 'rate') {
    const { rate, observedAtSecs, validUntilSecs } = round;
    return { rate, observedAtSecs, validUntilSecs };
  }
  if (round.problem === 'too_few_sources') return before;
  return { ...before, validUntilSecs: Math.min(before.validUntilSecs ?? nowSecs, nowSecs) };
}

/** How far the clocks of two readings may be apart. */
const mostApartSecs = 1;

/**
 * The rate that may be offered at a time. One that ends later than any round of this time could is from before the database's clock went
 * back: it is as old as it seems new.
 */
export function currentRate(
  { rate, validUntilSecs }: RateState,
  { maxAgeSecs }: Pick<RateTerms, 'maxAgeSecs'>,
  nowSecs: number,
): Rate | undefined {
  const leftSecs = (validUntilSecs ?? nowSecs) - nowSecs;
  return leftSecs > 0 && leftSecs <= maxAgeSecs + mostApartSecs ? rate : undefined;
}

export function isSameRate(a: Rate | undefined, b: Rate | undefined): boolean {
  return a && b ? compareRates(a, b) === 0 : a === b;
}
