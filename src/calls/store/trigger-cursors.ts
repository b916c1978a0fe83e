import type pg from 'pg';
import type { ChainPosition, Checkpoint } from '../../base/values/triggers/chain-position.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import {
  beginRound,
  endRound,
  readTasks,
  renewRound,
  type TaskName,
  type TaskState,
} from '../../ledger/store/tasks.ts';

/** Whose cursor it is: a trigger, and the hash of what a configuration says of it. */
export interface CursorName {
  readonly trigger: string;
  readonly terms: Buffer;
}

/** The times that a schedule has still to handle, in Unix milliseconds by the database's clock. */
export interface CronLook {
  /** The fencing token. */
  readonly look: number;
  /** Not included. */
  readonly fromMs: number;
  /** Now; included. */
  readonly nowMs: number;
}

interface StoredSchedule {
  /** Every time up to here has fired, or was skipped: Unix milliseconds. */
  readonly handled_until: number;
}

function scheduleTask({ trigger, terms }: CursorName): TaskName {
  return { kind: 'schedule', queue: trigger, key: terms.toString('hex') };
}

/** The same trigger as other configurations have it. */
async function readOthers<Payload>(
  pool: pg.Pool,
  { kind, queue, key }: TaskName,
): Promise<readonly TaskState<Payload>[]> {
  return (await readTasks<Payload>(pool, { kind, queue })).filter((task) => task.key !== key);
}

/** Another schedule of the trigger was followed instead if it was seen this much later. */
const replacedAfterMs = 60_000;

/**
 * Where a schedule continues. It begins now at its first sight, and if another schedule of the trigger was followed instead. Several
 * gateways may look at the same time: the cursor moves with the look that began last.
 */
export async function beginCronLook(pool: pg.Pool, cursor: CursorName): Promise<CronLook> {
  const name = scheduleTask(cursor);
  const begun = await beginRound<StoredSchedule>(pool, name, 0);
  if (!begun) throw new Error('the row of a schedule is due at every time, and was not');
  const nowMs = begun.begunAt.getTime();
  const seenMs = begun.okAt.getTime();
  const others = await readOthers(pool, name);
  // a time of the future is from before the clock went back
  const isReplaced = others.some(({ okAt }) => +okAt > seenMs + replacedAfterMs && +okAt <= nowMs);
  const handledMs = isReplaced ? nowMs : (begun.payload.handled_until ?? nowMs);
  return { look: begun.round, fromMs: Math.min(handledMs, nowMs), nowMs };
}

/** Notes that every time up to here has fired, or was skipped. False if another look has begun: it comes as far. */
export function endCronLook(
  pool: pg.Pool,
  cursor: CursorName,
  { look }: Pick<CronLook, 'look'>,
  untilMs: number,
): Promise<boolean> {
  const payload: StoredSchedule = { handled_until: untilMs };
  return endRound(pool, scheduleTask(cursor), { round: look, dueMs: 0, payload });
}

export interface ChainCursorName extends CursorName {
  readonly network: Caip2;
}

interface StoredChain {
  /** The block up to which the calls are in the ledger, then older ones. */
  readonly reached?: readonly StoredCheckpoint[] | undefined;
  /** The newest block that counts, at the last look that ended well. */
  readonly head?: string | undefined;
}

function chainTask({ trigger, network, terms }: ChainCursorName): TaskName {
  return { kind: 'chain_trigger', queue: `${network}/${trigger}`, key: terms.toString('hex') };
}

export interface BegunChainLook {
  /** The fencing token. */
  readonly look: number;
  /** Undefined at the first sight of the trigger. */
  readonly position: ChainPosition | undefined;
  /** The newest block that counted at the last look that ended well. */
  readonly head: bigint | undefined;
  /** Where a trigger of this name was that was configured in another way; only where `position` is undefined. */
  readonly earlier: ChainPosition | undefined;
}

/** Begins the next look of a trigger at its chain; undefined if it is not due, or another gateway looks. */
export async function beginChainLook(
  pool: pg.Pool,
  cursor: ChainCursorName,
  leaseMs: number,
): Promise<BegunChainLook | undefined> {
  const name = chainTask(cursor);
  const begun = await beginRound<StoredChain>(pool, name, leaseMs);
  if (!begun) return undefined;
  const position = positionOf(begun.payload.reached);
  const earlier = position ? undefined : await newestOther(pool, name);
  return { look: begun.round, position, head: headOf(begun.payload), earlier };
}

async function newestOther(pool: pg.Pool, name: TaskName): Promise<ChainPosition | undefined> {
  const [newest] = (await readOthers<StoredChain>(pool, name))
    .filter(({ payload }) => payload.reached !== undefined)
    .toSorted((a, b) => +b.okAt - +a.okAt);
  return positionOf(newest?.payload.reached);
}

/** Notes that this gateway still looks. False if another one has begun the next look. */
export function renewChainLook(
  pool: pg.Pool,
  cursor: ChainCursorName,
  look: number,
  leaseMs: number,
): Promise<boolean> {
  return renewRound(pool, chainTask(cursor), look, leaseMs);
}

/** `dueMs`: when the next look may begin. `problem`: why this one did not end well; undefined if it did. */
type ChainMove = Pick<BegunChainLook, 'look' | 'position' | 'head'> & {
  readonly dueMs: number;
  readonly problem: string | undefined;
};

/** Notes how far a look has come. False if another gateway has begun the next one. */
export function moveChainCursor(
  pool: pg.Pool,
  cursor: ChainCursorName,
  { look, position, head, dueMs, problem }: ChainMove,
): Promise<boolean> {
  const payload: StoredChain = { reached: position?.map(stored), head: head?.toString() };
  return endRound(pool, chainTask(cursor), { round: look, dueMs, payload, error: problem });
}

type StoredCheckpoint = readonly [number: string, hash: Hex, timeSecs: number];

function stored({ number, hash, timestampSecs }: Checkpoint): StoredCheckpoint {
  return [String(number), hash, timestampSecs];
}

/** As `moveChainCursor` has written it. */
function positionOf(reached: StoredChain['reached']): ChainPosition | undefined {
  const [first, ...older] = (reached ?? []).map(([number, hash, timestampSecs]): Checkpoint => ({
    number: BigInt(number),
    hash,
    timestampSecs,
  }));
  return first && [first, ...older];
}

function headOf({ head }: StoredChain): bigint | undefined {
  return head === undefined ? undefined : BigInt(head);
}

export type TriggerProgress = Awaited<ReturnType<typeof readTriggerProgress>>;

/** How far all triggers are, of all configurations. */
export async function readTriggerProgress(pool: pg.Pool) {
  const [clock, schedules, chains] = await Promise.all([
    pool.query<{ now: Date }>('select tollbook.clock() as now'),
    readTasks<StoredSchedule>(pool, { kind: 'schedule' }),
    readTasks<StoredChain>(pool, { kind: 'chain_trigger' }),
  ]);
  return {
    /** The database's time, in Unix milliseconds. */
    nowMs: clock.rows[0]?.now.getTime() ?? 0,
    schedules: schedules.map(({ queue, key, payload, okAt }) => ({
      trigger: queue,
      terms: Buffer.from(key, 'hex'),
      handledUntilMs: payload.handled_until ?? okAt.getTime(),
    })),
    chains: chains.map(({ queue, key, payload, okAt, error }) => ({
      ...triggerOf(queue),
      terms: Buffer.from(key, 'hex'),
      cursor: positionOf(payload.reached)?.[0],
      head: headOf(payload),
      okAtMs: okAt.getTime(),
      problem: error,
    })),
  };
}

/** As `chainTask` has written it. */
function triggerOf(queue: string): Pick<ChainCursorName, 'trigger' | 'network'> {
  const end = queue.indexOf('/');
  return { network: queue.slice(0, end) as Caip2, trigger: queue.slice(end + 1) };
}
