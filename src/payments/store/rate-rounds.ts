import type pg from 'pg';
import type { RateState } from '../../base/values/round.ts';
import { parseRate, rateText } from '../../base/values/rate.ts';
import type { Address, Caip2 } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** Whose rate it is: a token, and the hash of what a configuration says of its rate. */
export interface RateName {
  readonly network: Caip2;
  readonly asset: Address;
  readonly terms: Buffer;
}

/** What one source said in a round, as it is shown. */
export interface ShownAnswer {
  readonly source: string;
  readonly rate?: string;
  /** Unix seconds. */
  readonly observed_at?: number;
  readonly problem?: string;
}

export interface BegunRound {
  readonly round: number;
  readonly state: RateState;
  /** The rate that the ledger's last event says is in force. */
  readonly recorded: string | undefined;
}

/** Begins the next round of a rate; undefined where it is not due, or another gateway asks. */
export async function beginRateRound(
  pool: pg.Pool,
  { network, asset, terms }: RateName,
  leaseMs: number,
): Promise<BegunRound | undefined> {
  const [row] = await callTableFunction(pool, 'begin_rate_round', [network, asset, terms, leaseMs]);
  if (!row) return undefined;
  return { round: row.round, state: stateOf(row), recorded: row.recorded ?? undefined };
}

interface EndedRound {
  readonly round: number;
  readonly dueMs: number;
  readonly state: RateState;
  readonly recorded: string | undefined;
  readonly problem: string | undefined;
  readonly answers: readonly ShownAnswer[];
}

/** Ends a round. False where another gateway has begun the next one. */
export function endRateRound(
  pool: pg.Pool,
  { network, asset, terms }: RateName,
  { round, dueMs, state, recorded, problem, answers }: EndedRound,
): Promise<boolean> {
  return callFunction(pool, 'end_rate_round', [
    network,
    asset,
    terms,
    round,
    dueMs,
    state.rate ? rateText(state.rate) : null,
    dateOf(state.observedAtSecs),
    dateOf(state.validUntilSecs),
    recorded ?? null,
    problem ?? null,
    answers,
  ]);
}

/** The rate of a token as the gateways know it. */
export interface KnownRound {
  readonly name: RateName;
  readonly state: RateState;
  readonly problem: string | undefined;
  readonly answers: readonly ShownAnswer[];
}

export interface RateReading {
  readonly rounds: readonly KnownRound[];
  /** The database's time at the reading or a moment later, in Unix seconds. A step of this machine's own clock does not change it. */
  readonly nowSecs: () => number;
}

/** The newest round of every rate, of all configurations. */
export async function readRateRounds(pool: pg.Pool): Promise<RateReading> {
  const askedMs = performance.now();
  const [clock, rows] = await Promise.all([
    pool.query<{ now: number }>('select extract(epoch from tollbook.clock())::float8 as now'),
    queriesOn(pool)
      .selectFrom('tollbook.rate_round')
      .select(['network', 'asset', 'terms', 'rate', 'observed_at', 'valid_until', 'problem', 'answers'])
      .execute(),
  ]);
  const readSecs = clock.rows[0]?.now ?? 0;
  return {
    nowSecs: () => readSecs + (performance.now() - askedMs) / 1_000,
    rounds: rows.map(({ network, asset, terms, problem, answers, ...row }) => ({
      // written by `beginRateRound`
      name: { network: network as Caip2, asset: asset as Address, terms },
      state: stateOf(row),
      problem: problem ?? undefined,
      answers: answers as readonly ShownAnswer[],
    })),
  };
}

interface StateRow {
  readonly rate: string | null;
  readonly observed_at: Date | null;
  readonly valid_until: Date | null;
}

function stateOf({ rate, observed_at: observedAt, valid_until: validUntil }: StateRow): RateState {
  return {
    rate: rate === null ? undefined : parseRate(rate),
    observedAtSecs: observedAt === null ? undefined : observedAt.getTime() / 1_000,
    validUntilSecs: validUntil === null ? undefined : validUntil.getTime() / 1_000,
  };
}

function dateOf(secs: number | undefined): Date | null {
  return secs === undefined ? null : new Date(secs * 1_000);
}
