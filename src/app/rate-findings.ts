import type { Config } from '../base/config/config.ts';
import { judgeRound, type JudgedAnswer, type Round, type SourceAnswer } from '../base/values/round.ts';
import { deviationText, medianRate, rateText } from '../base/values/rate.ts';
import type { AcceptedToken } from '../base/values/token.ts';
import { askSource } from '../payments/peers/rates/ask-source.ts';
import type { Finding } from './chain-findings.ts';

/** What the sources of the tokens' rates say now, for a person. */
export interface RateFindings {
  /** One line a token with sources, and below it one line a source that said a rate. */
  readonly lines: readonly string[];
  /** Sources that said none that can be used, and tokens that would not be offered. */
  readonly warnings: readonly Finding[];
}

/** Asks every source of every token once, all simultaneously and each for at most three seconds, and judges them as a round does. Never throws. */
export async function askRates({ jobs }: Config): Promise<RateFindings> {
  const tokens = jobs?.acceptedTokens ?? [];
  const found = await Promise.all(tokens.map(askToken));
  return {
    lines: found.flatMap(({ lines }) => lines),
    warnings: found.flatMap(({ warnings }) => warnings),
  };
}

async function askToken(
  { symbol, network, rateTerms: terms }: AcceptedToken,
  index: number,
): Promise<RateFindings> {
  if (!terms) return { lines: [], warnings: [] };
  const askedAt = Math.floor(Date.now() / 1_000);
  const said = await Promise.all(terms.sources.map((source) => askSource(source, askedAt)));
  const now = Date.now() / 1_000;
  const round = judgeRound(terms, said, now);
  const at = ['accepted_tokens', index, 'rates'] as const;
  const wrong = round.answers.flatMap(({ name, problem }, place) =>
    problem === undefined
      ? []
      : [{ at: [...at, place], message: `the source ${name} is left out: ${problem}` }],
  );
  const refused =
    round.kind === 'problem'
      ? [{ at, message: `no rate (${round.problem}): the token would not be offered` }]
      : [];
  return {
    lines: [`${symbol} on ${network}: ${roundText(round, now)}`, ...shownAnswers(round.answers, said, now)],
    warnings: [...wrong, ...refused],
  };
}

function roundText(round: Round, nowSecs: number): string {
  return round.kind === 'rate'
    ? `${rateText(round.rate)} tokens for a native unit, for the next ${Math.floor(round.validUntilSecs - nowSecs)} s`
    : 'no rate';
}

/** Each rate that was said, also one that is left out, with its age and its distance from the median of all that were said. */
function shownAnswers(
  answers: readonly JudgedAnswer[],
  said: readonly SourceAnswer[],
  nowSecs: number,
): string[] {
  const median = medianRate(said.flatMap((answer) => (answer.kind === 'rate' ? answer.rate : [])));
  return answers.flatMap(({ name, rate, observedAtSecs = nowSecs, problem }) =>
    rate && median
      ? `  ${name}: ${rateText(rate)}, ${Math.max(0, Math.floor(nowSecs - observedAtSecs))} s old, ${deviationText(rate, median)} from the median${problem === undefined ? '' : ` (left out: ${problem})`}`
      : [],
  );
}
