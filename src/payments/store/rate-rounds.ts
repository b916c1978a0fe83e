import type pg from 'pg';
import type { RateState } from '../../base/values/round.ts';
import { parseRate, rateText } from '../../base/values/rate.ts';
import type { Address, Caip2 } from '../../base/values/primitives.ts';
import { beginRound, endRound, readTasks, type TaskName } from '../../ledger/store/tasks.ts';

/** Whose rate it is: a token, and the hash of what a configuration says of its rate. */
export interface RateName {
  readonly network: Caip2;
  readonly asset: Address;
  readonly terms: Buffer;
}

/** One source's displayed answer in a round. */
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

/** What a round leaves for the next one. Times are Unix seconds. */
interface StoredRate {
  readonly rate?: string | undefined;
  /** The oldest of its sources; of a fixed rate when it was seen first. */
  readonly observed_at?: number | undefined;
  readonly valid_until?: number | undefined;
  readonly recorded?: string | undefined;
  readonly answers: readonly ShownAnswer[];
}

/** Each configuration of a rate has separate rounds. */
function taskOf({ network, asset, terms }: RateName): TaskName {
  return { kind: 'rate', queue: `${network}/${asset}`, key: terms.toString('hex') };
}

function nameOf({ queue, key }: Pick<TaskName, 'queue' | 'key'>): RateName {
  const [network, asset] = queue.split('/');
  // written by `taskOf`
  return { network: network as Caip2, asset: asset as Address, terms: Buffer.from(key, 'hex') };
}

/** Begins the next round of a rate; undefined if it is not due, or another gateway asks. */
export async function beginRateRound(
  pool: pg.Pool,
  name: RateName,
  leaseMs: number,
): Promise<BegunRound | undefined> {
  const begun = await beginRound<StoredRate>(pool, taskOf(name), leaseMs);
  return begun && { round: begun.round, state: stateOf(begun.payload), recorded: begun.payload.recorded };
}

/** Ends a round. False if another gateway has begun the next one. */
export function endRateRound(
  pool: pg.Pool,
  name: RateName,
  {
    round,
    dueMs,
    state,
    recorded,
    problem,
    answers,
  }: BegunRound & Pick<KnownRound, 'problem' | 'answers'> & { readonly dueMs: number },
): Promise<boolean> {
  const payload: StoredRate = {
    rate: state.rate && rateText(state.rate),
    observed_at: state.observedAtSecs,
    valid_until: state.validUntilSecs,
    recorded,
    answers,
  };
  return endRound(pool, taskOf(name), { round, dueMs, payload, error: problem });
}

/** The rate of a token as the gateways know it. */
export type KnownRound = Awaited<ReturnType<typeof readRateRounds>>['rounds'][number];

/** The newest round of every rate, of all configurations. */
export async function readRateRounds(pool: pg.Pool) {
  const askedMs = performance.now();
  const [clock, tasks] = await Promise.all([
    pool.query<{ now: number }>('select extract(epoch from tollbook.clock())::float8 as now'),
    readTasks<StoredRate>(pool, { kind: 'rate' }),
  ]);
  const readSecs = clock.rows[0]?.now ?? 0;
  return {
    /** The database's time at the reading or a moment later, in Unix seconds. A step of this machine's own clock does not change it. */
    nowSecs: (): number => readSecs + (performance.now() - askedMs) / 1_000,
    rounds: tasks.map((task) => ({
      name: nameOf(task),
      state: stateOf(task.payload),
      problem: task.error,
      answers: task.payload.answers ?? [],
    })),
  };
}

function stateOf({ rate, observed_at, valid_until }: Partial<StoredRate>): RateState {
  return {
    rate: rate === undefined ? undefined : parseRate(rate),
    observedAtSecs: observed_at,
    validUntilSecs: valid_until,
  };
}
