import { processIds, readStat, withDescendants } from './proc.ts';

/** What a worker's processor time is spent on, as far as the support files say so; the rest is the tests' own work. */
export type Cause =
  | 'loading'
  | 'the tests themselves'
  | 'starting gateways'
  | 'copying databases'
  | 'commands in this process'
  | 'driving the browser'
  | 'the chain'
  | 'waiting for conditions';

/** Processor time in milliseconds: of this process by cause, and of its ended child processes. */
export interface Spent {
  readonly own: Partial<Record<Cause, number>>;
  readonly childrenMs: number;
}

let own: Partial<Record<Cause, number>> = {};
let current: Cause = 'loading';
let lastOwnMs = 0;
let lastChildrenMs = 0;

/** Books what was spent since the last call, and says what is worked on from now on. */
export function switchTo(cause: Cause): void {
  const { user, system } = process.cpuUsage();
  const nowMs = (user + system) / 1_000;
  own[current] = (own[current] ?? 0) + nowMs - lastOwnMs;
  lastOwnMs = nowMs;
  current = cause;
}

/** Books what the work spends under a cause. Work at the same time is booked under whichever cause began last. */
export async function metered<T>(cause: Cause, work: () => Promise<T>): Promise<T> {
  const before = current;
  switchTo(cause);
  try {
    return await work();
  } finally {
    switchTo(before);
  }
}

/** What was spent since it was last taken. */
export function takeSpent(): Spent {
  switchTo(current);
  const nowMs = childrenMs();
  const spent = { own, childrenMs: nowMs - lastChildrenMs };
  own = {};
  lastChildrenMs = nowMs;
  return spent;
}

const msPerTick = 10;

/** Processor time of the child processes that have ended, with theirs. 0 on a system without /proc. */
export function childrenMs(): number {
  return readProcess('self')?.childrenMs ?? 0;
}

/** Processor time of the live processes of a name below this one, with that of their ended children. 0 on a system without /proc. */
export function liveMs(name: string): number {
  const all = processIds().flatMap((entry) => readProcess(entry) ?? []);
  const below = withDescendants([process.pid], all);
  return all
    .filter((one) => below.has(one.pid) && one.name === name)
    .reduce((sum, one) => sum + one.ownMs + one.childrenMs, 0);
}

interface ProcessTimes {
  readonly pid: number;
  readonly name: string;
  readonly parent: number;
  readonly ownMs: number;
  readonly childrenMs: number;
}

function readProcess(entry: string): ProcessTimes | undefined {
  try {
    const { pid, name, fields } = readStat(entry);
    const ticks = (from: number): number => (Number(fields[from]) + Number(fields[from + 1])) * msPerTick;
    return {
      pid,
      name,
      parent: Number(fields[1]),
      ownMs: ticks(11),
      childrenMs: ticks(13),
    };
  } catch {
    // the process has ended meanwhile
    return undefined;
  }
}
