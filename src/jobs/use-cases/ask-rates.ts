import type { EventData } from '../../ledger/rules/event.ts';
import {
  afterRound,
  currentRate,
  type JudgedAnswer,
  judgeRound,
  type RateState,
} from '../../base/values/round.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { rateText } from '../../base/values/rate.ts';
import type { AcceptedToken, Rate, RateTerms } from '../../base/values/token.ts';
import { askSource, sourceTimeoutMs } from '../../payments/peers/rates/ask-source.ts';
import {
  beginRateRound,
  type BegunRound,
  endRateRound,
  type ShownAnswer,
} from '../../payments/store/rate-rounds.ts';
import { readLatestEvents } from '../../ledger/store/streams.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { rateName, type Rates } from './rates.ts';

export interface RatePorts extends Pick<Ledger, 'pool' | 'lane'> {
  readonly rates: Pick<Rates, 'nowSecs'>;
  readonly log: OperatorLog;
}

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
 * Asks for a token's rate if that is due and no other gateway does. A changed rate is an event before any gateway offers it.
 */
export async function askRate(context: RatePorts, token: AcceptedToken): Promise<void> {
  const name = rateName(token);
  const begun = await beginRateRound(context.pool, name, leaseMs);
  if (!begun) return;
  // read before the sources are asked: a gateway that stood still meanwhile records nothing
  const last = await readLastChange(context, token, begun);
  const found = token.rateTerms
    ? await askSources(context, token.rateTerms, begun)
    : fixedRate(token, begun, context.rates.nowSecs());
  const now = context.rates.nowSecs();
  const inForce = token.rateTerms ? currentRate(found.state, token.rateTerms, now) : found.state.rate;
  const recorded = inForce && rateText(inForce);
  if (recorded !== last.rate && !(await recordChange(context, token, last, found, inForce))) return;
  const dueMs = token.rateTerms ? dueInMs(token.rateTerms, found.state, now) : mostMs;
  await endRateRound(context.pool, name, { round: begun.round, dueMs, recorded, ...found });
}

async function askSources({ rates }: RatePorts, terms: RateTerms, begun: BegunRound): Promise<Found> {
  const askedAt = rates.nowSecs();
  const said = await Promise.all(terms.sources.map((source) => askSource(source, Math.floor(askedAt))));
  const now = rates.nowSecs();
  const round = judgeRound(terms, said, now);
  return {
    state: afterRound(begun.state, round, now),
    problem: round.kind === 'problem' ? round.problem : undefined,
    answers: round.answers.map(shown),
  };
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

/** Four times within the age of a round, and sooner if it ends or has ended. */
function dueInMs({ maxAgeSecs }: RateTerms, { validUntilSecs }: RateState, nowSecs: number): number {
  const leftMs = ((validUntilSecs ?? 0) - leadSecs - nowSecs) * 1_000;
  return Math.max(soonMs, Math.min(mostMs, (maxAgeSecs * 1_000) / 4, leftMs));
}

interface LastChange {
  /** Of the stream. */
  readonly version: number;
  /** What the ledger says is in force; undefined for no rate. */
  readonly rate: string | undefined;
}

/** Gateways with other sources record their changes in the same stream, while a configuration is brought to all of them. */
const readBack = 16;

function streamOf({ network, asset }: AcceptedToken): string {
  return `rate:${network}:${asset}`;
}

function termsOf(token: AcceptedToken): Hex {
  return `0x${rateName(token).terms.toString('hex')}`;
}

/** The last event decides, and not the row: a gateway may have ended between the event and the end of its round. */
async function readLastChange(
  { pool }: RatePorts,
  token: AcceptedToken,
  { recorded }: BegunRound,
): Promise<LastChange> {
  const last = await readLatestEvents(pool, streamOf(token), readBack);
  const own = last.find(({ type, data }) => type === 'rate_changed' && data.terms === termsOf(token));
  const rate = own?.type === 'rate_changed' ? own.data.rate : recorded;
  return { version: last[0]?.version ?? 0, rate };
}

/** False if another gateway has recorded a change meanwhile: its round counts. */
async function recordChange(
  { lane, log }: RatePorts,
  token: AcceptedToken,
  { version, rate: previous }: LastChange,
  { problem, answers }: Found,
  rate: Rate | undefined,
): Promise<boolean> {
  const { network, asset, symbol } = token;
  const text = rate && rateText(rate);
  const data: EventData<'rate_changed'> = {
    network,
    asset,
    symbol,
    terms: termsOf(token),
    ...(previous === undefined ? {} : { previous_rate: previous }),
    ...(text === undefined ? { reason: problem ?? 'too_old' } : { rate: text }),
    // as the schema of the event checked them
    sources: answers as EventData<'rate_changed'>['sources'],
  };
  const events = [{ type: 'rate_changed', data } as const];
  const { outcome } = await lane.append({ stream: streamOf(token), expect: version, events });
  if (outcome !== 'ok') return false;
  if (text === undefined)
    log.warn({ network, asset, symbol, reason: data.reason }, 'a token has no current rate: not offered');
  else log.info({ network, asset, symbol, rate: text, previous }, 'a token has another rate');
  return true;
}
