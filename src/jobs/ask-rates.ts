import type { EventData } from '../domain/events/event.ts';
import {
  afterRound,
  currentRate,
  type JudgedAnswer,
  judgeRound,
  type RateState,
  type Round,
} from '../domain/rates/round.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { rateText } from '../domain/values/rate.ts';
import type { AcceptedToken, Rate, RateTerms } from '../domain/values/token.ts';
import { askSource, sourceTimeoutMs } from '../peers/rates/ask-source.ts';
import { beginRateRound, type BegunRound, endRateRound, type ShownAnswer } from '../store/rate-rounds.ts';
import { readLastEvent } from '../store/streams.ts';
import type { JobsContext } from './context.ts';
import { rateName } from './rates.ts';

type RateContext = Pick<JobsContext, 'pool' | 'lane' | 'log'> & {
  readonly rates: Pick<JobsContext['rates'], 'nowSecs'>;
};

/** Longer than a round may take: then another gateway asks. */
const leaseMs = sourceTimeoutMs + 5_000;
/** How often a token without a rate is asked about, and how long before the end of a rate its sources are asked again. */
const soonMs = 500;
const leadSecs = 3;
const mostMs = 60_000;

interface Found {
  readonly state: RateState;
  readonly problem: string | undefined;
  readonly answers: readonly ShownAnswer[];
}

/**
 * Asks for a token's rate where that is due and no other gateway does. A changed rate is an event before any gateway offers it.
 */
export async function askRate(context: RateContext, token: AcceptedToken): Promise<void> {
  const name = rateName(token);
  const begun = await beginRateRound(context.pool, name, leaseMs);
  if (!begun) return;
  const found = token.rateTerms
    ? await askSources(context, token.rateTerms, begun)
    : fixedRate(token, begun, context.rates.nowSecs());
  const now = context.rates.nowSecs();
  const inForce = token.rateTerms ? currentRate(found.state, now) : found.state.rate;
  const recorded = inForce && rateText(inForce);
  if (recorded !== begun.recorded) await recordChange(context, token, begun, found, inForce);
  const dueMs = token.rateTerms ? dueInMs(token.rateTerms, found.state, now) : mostMs;
  await endRateRound(context.pool, name, { round: begun.round, dueMs, recorded, ...found });
}

async function askSources({ rates }: RateContext, terms: RateTerms, begun: BegunRound): Promise<Found> {
  const askedAt = rates.nowSecs();
  const said = await Promise.all(terms.sources.map((source) => askSource(source, Math.floor(askedAt))));
  const now = rates.nowSecs();
  const round = judgeRound(terms, said, now);
  return {
    state: afterRound(begun.state, round, now),
    problem: problemOf(round),
    answers: round.answers.map(shown),
  };
}

function problemOf(round: Round): string | undefined {
  return round.kind === 'problem' ? round.problem : undefined;
}

/** A fixed rate is as old as its first round. */
function fixedRate(
  { ratePerNativeUnit: rate }: AcceptedToken,
  { state }: BegunRound,
  nowSecs: number,
): Found {
  const seenAt = state.observedAtSecs ?? nowSecs;
  return {
    state: { rate, observedAtSecs: seenAt, validUntilSecs: undefined },
    problem: undefined,
    answers: rate ? [{ source: 'fixed', rate: rateText(rate), observed_at: Math.floor(seenAt) }] : [],
  };
}

function shown({ name, rate, observedAtSecs, problem }: JudgedAnswer): ShownAnswer {
  return {
    source: name,
    ...(rate && { rate: rateText(rate) }),
    ...(observedAtSecs === undefined ? {} : { observed_at: Math.floor(observedAtSecs) }),
    ...(problem && { problem }),
  };
}

/** Four times within the age of a round, and sooner where it ends or has ended. */
function dueInMs({ maxAgeSecs }: RateTerms, { validUntilSecs }: RateState, nowSecs: number): number {
  const leftMs = ((validUntilSecs ?? 0) - leadSecs - nowSecs) * 1_000;
  return Math.max(soonMs, Math.min(mostMs, (maxAgeSecs * 1_000) / 4, leftMs));
}

/** A gateway that ended between the event and its round would record the event again: not a second time. */
async function recordChange(
  { pool, lane, log }: RateContext,
  token: AcceptedToken,
  { recorded: previous }: BegunRound,
  { problem, answers }: Found,
  rate: Rate | undefined,
): Promise<void> {
  const { network, asset, symbol } = token;
  const stream = `rate:${network}:${asset}`;
  const terms: Hex = `0x${rateName(token).terms.toString('hex')}`;
  const text = rate && rateText(rate);
  const last = await readLastEvent(pool, stream);
  const isRecorded = last?.type === 'rate_changed' && last.data.terms === terms && last.data.rate === text;
  if (isRecorded) return;
  const data: EventData<'rate_changed'> = {
    network,
    asset,
    symbol,
    terms,
    ...(previous === undefined ? {} : { previous_rate: previous }),
    ...(text === undefined ? { reason: problem ?? 'too_old' } : { rate: text }),
    // as they were checked by the schema of the event
    sources: answers as EventData<'rate_changed'>['sources'],
  };
  await lane.append({ stream, events: [{ type: 'rate_changed', data }] });
  if (text === undefined)
    log.warn({ network, asset, symbol, reason: data.reason }, 'a token has no current rate: not offered');
  else log.info({ network, asset, symbol, rate: text, previous }, 'a token has another rate');
}
