import type pg from 'pg';
import type { ChainPosition, Checkpoint } from '../../base/values/triggers/chain-position.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** Whose cursor it is: a trigger, and the hash of what a configuration says of it. */
export interface CursorName {
  readonly trigger: string;
  readonly terms: Buffer;
}

/** The times that a schedule has still to handle, in Unix milliseconds by the database's clock. */
export interface CronLook {
  /** Not included. */
  readonly fromMs: number;
  /** Now; included. */
  readonly nowMs: number;
}

/** Where a schedule goes on. It begins now at its first sight, and where another schedule of the trigger was followed instead. */
export async function beginCronLook(pool: pg.Pool, { trigger, terms }: CursorName): Promise<CronLook> {
  const [row] = await callTableFunction(pool, 'begin_cron_look', [trigger, terms]);
  if (!row) throw new Error('begin_cron_look returned no row');
  return { fromMs: row.handled_until.getTime(), nowMs: row.seen_until.getTime() };
}

/** Notes that every time up to here has fired, or was skipped. */
export function endCronLook(pool: pg.Pool, { trigger, terms }: CursorName, untilMs: number): Promise<void> {
  return callFunction(pool, 'end_cron_look', [trigger, terms, new Date(untilMs)]);
}

export interface ChainCursorName extends CursorName {
  readonly network: Caip2;
}

export interface BegunChainLook {
  /** The fencing token. */
  readonly look: number;
  /** Undefined at the first sight of the trigger. */
  readonly position: ChainPosition | undefined;
  /** Where a trigger of this name was that was configured in another way. */
  readonly earlier: ChainPosition | undefined;
}

/** Begins the next look of a trigger at its chain; undefined where it is not due, or another gateway looks. */
export async function beginChainLook(
  pool: pg.Pool,
  { trigger, network, terms }: ChainCursorName,
  leaseMs: number,
): Promise<BegunChainLook | undefined> {
  const [row] = await callTableFunction(pool, 'begin_chain_look', [trigger, network, terms, leaseMs]);
  if (!row) return undefined;
  return { look: row.look, position: positionOf(row.reached), earlier: positionOf(row.earlier) };
}

/** Notes that this gateway still looks. False where another one has begun the next look. */
export function renewChainLook(
  pool: pg.Pool,
  { trigger, network, terms }: ChainCursorName,
  look: number,
  leaseMs: number,
): Promise<boolean> {
  return callFunction(pool, 'renew_chain_look', [trigger, network, terms, look, leaseMs]);
}

export interface ChainMove {
  readonly look: number;
  readonly position: ChainPosition | undefined;
  /** The newest block that counts. */
  readonly head: bigint | undefined;
  /** When the next look may begin. */
  readonly dueMs: number;
  /** Why the look did not end well; undefined where it did. */
  readonly problem: string | undefined;
}

/** Notes how far a look has come. False where another gateway has begun the next one. */
export function moveChainCursor(
  pool: pg.Pool,
  { trigger, network, terms }: ChainCursorName,
  { look, position, head, dueMs, problem }: ChainMove,
): Promise<boolean> {
  return callFunction(pool, 'move_chain_cursor', [
    trigger,
    network,
    terms,
    look,
    dueMs,
    position ? position.map(stored) : null,
    head === undefined ? null : String(head),
    problem ?? null,
  ]);
}

type StoredCheckpoint = readonly [number: string, hash: Hex, timeSecs: number];

function stored({ number, hash, timestampSecs }: Checkpoint): StoredCheckpoint {
  return [String(number), hash, timestampSecs];
}

/** As `moveChainCursor` has written it. */
function positionOf(reached: unknown): ChainPosition | undefined {
  const [first, ...older] = ((reached ?? []) as readonly StoredCheckpoint[]).map(
    ([number, hash, timestampSecs]): Checkpoint => ({ number: BigInt(number), hash, timestampSecs }),
  );
  return first && [first, ...older];
}

/** How far a schedule has come. */
export interface CronProgress extends CursorName {
  readonly handledUntilMs: number;
}

/** How far a trigger has read its chain. */
export interface ChainProgress extends ChainCursorName {
  readonly cursor: Checkpoint | undefined;
  readonly head: bigint | undefined;
  readonly okAtMs: number;
  readonly problem: string | undefined;
}

export interface TriggerProgress {
  readonly schedules: readonly CronProgress[];
  readonly chains: readonly ChainProgress[];
  /** The database's time, in Unix milliseconds. */
  readonly nowMs: number;
}

/** How far all triggers are, of all configurations. */
export async function readTriggerProgress(pool: pg.Pool): Promise<TriggerProgress> {
  const db = queriesOn(pool);
  const [clock, schedules, chains] = await Promise.all([
    pool.query<{ now: Date }>('select tollbook.clock() as now'),
    db.selectFrom('tollbook.cron_cursor').select(['trigger_name', 'terms', 'handled_until']).execute(),
    db
      .selectFrom('tollbook.chain_cursor')
      .select(['trigger_name', 'network', 'terms', 'reached', 'head', 'ok_at', 'problem'])
      .execute(),
  ]);
  return {
    nowMs: clock.rows[0]?.now.getTime() ?? 0,
    schedules: schedules.map((row) => ({
      trigger: row.trigger_name,
      terms: row.terms,
      handledUntilMs: row.handled_until.getTime(),
    })),
    chains: chains.map((row) => ({
      trigger: row.trigger_name,
      // written by `beginChainLook`
      network: row.network as Caip2,
      terms: row.terms,
      cursor: positionOf(row.reached)?.[0],
      head: row.head === null ? undefined : BigInt(row.head),
      okAtMs: row.ok_at.getTime(),
      problem: row.problem ?? undefined,
    })),
  };
}
