import { expect, test } from 'vitest';
import { afterRound, currentRate, judgeRound, type SourceAnswer } from '../../../src/base/values/round.ts';
import { parseRate, rateText } from '../../../src/base/values/rate.ts';
import type { RateSource, RateTerms } from '../../../src/base/values/token.ts';

const now = 1_000_000;
const source = (name: string, maxAgeSecs = 60): RateSource => ({
  kind: 'http',
  name,
  maxAgeSecs,
  url: 'https://a.example/',
  pointer: '/a',
  timePointer: undefined,
  inverse: false,
});
const terms = (count: number, more: Partial<RateTerms> = {}): RateTerms => ({
  sources: Array.from({ length: count }, (_, index) => source(`s${index}`)),
  maxAgeSecs: 30,
  maxDeviationBps: 100,
  minSources: Math.floor(count / 2) + 1,
  bound: undefined,
  ...more,
});
const said = (text: string, ageSecs = 0): SourceAnswer => ({
  kind: 'rate',
  rate: parseRate(text)!,
  observedAtSecs: now - ageSecs,
});
const shownRound = (round: ReturnType<typeof judgeRound>) =>
  round.kind === 'rate' ? [rateText(round.rate), round.validUntilSecs - now] : round.problem;
const silent: SourceAnswer = { kind: 'problem', problem: 'unreachable' };

test.each([
  ['one source', terms(1), [said('3200')], ['3200', 30]],
  ['a source that is old ends the round early', terms(1), [said('3200', 50)], ['3200', 10]],
  ['a source that is too old', terms(1), [said('3200', 60)], 'too_few_sources'],
  ['a source from the future', terms(1), [said('3200', -61)], 'too_few_sources'],
  ['two of three', terms(3), [said('3200'), silent, said('3210')], ['3205', 30]],
  ['one of three', terms(3), [said('3200'), silent, silent], 'too_few_sources'],
  ['one of three far off', terms(3), [said('3200'), said('9000'), said('3210')], ['3205', 30]],
  ['two that differ', terms(2), [said('3200'), said('3400')], 'sources_disagree'],
  ['three that differ', terms(3), [said('3200'), said('3400'), said('3600')], 'sources_disagree'],
  [
    'a pair against a pair',
    terms(4, { minSources: 2 }),
    ['1', '1', '9', '9'].map((t) => said(t)),
    'sources_disagree',
  ],
  ['one that ends soon is left out', terms(3), [said('3200'), said('3201', 57), said('3202')], ['3201', 30]],
  [
    'out of bounds',
    terms(1, { bound: { rate: parseRate('3000')!, bps: 500 } }),
    [said('3200')],
    'out_of_bounds',
  ],
] satisfies [string, RateTerms, SourceAnswer[], unknown][])('a round of %s', (_, of, answers, expected) => {
  expect(shownRound(judgeRound(of, answers, now))).toEqual(expected);
});

test('a round without answers leaves the rate to its age, and sources that disagree end it immediately', () => {
  const first = afterRound(
    { rate: undefined, observedAtSecs: undefined, validUntilSecs: undefined },
    judgeRound(terms(2), [said('3200'), said('3200')], now),
    now,
  );
  const current = (state: typeof first, atSecs: number) => currentRate(state, terms(2), atSecs) !== undefined;
  expect([current(first, now), current(first, now + 29.9), current(first, now + 30)]).toEqual([
    true,
    true,
    false,
  ]);
  const silence = afterRound(first, judgeRound(terms(2), [silent, silent], now + 5), now + 5);
  expect([current(silence, now + 29.9), current(silence, now + 30)]).toEqual([true, false]);
  const split = afterRound(first, judgeRound(terms(2), [said('3200'), said('4000')], now + 5), now + 5);
  expect(current(split, now + 5)).toBe(false);
});

test('a rate that ends later than any round of now could is from before the clock went back, and is not current', () => {
  const state = { rate: parseRate('3200'), observedAtSecs: now, validUntilSecs: now + 30 };
  const current = (atSecs: number) => currentRate(state, terms(1), atSecs) !== undefined;
  expect([current(now), current(now - 1), current(now - 1.1), current(now - 3_600)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
