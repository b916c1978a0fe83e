import type pg from 'pg';
import { type ListingState, noLook } from '../../base/values/discovery/listing.ts';
import { beginRound, endRound, readTasks, type TaskName } from '../../ledger/store/tasks.ts';

export interface BegunLook {
  readonly look: number;
  readonly state: ListingState;
}

const taskOf = (url: string): TaskName => ({ kind: 'listing', queue: '', key: url });

/** Begins the next look at a discovery service; undefined if it is not due, or another gateway looks. */
export async function beginListingLook(
  pool: pg.Pool,
  url: string,
  leaseMs: number,
): Promise<BegunLook | undefined> {
  const begun = await beginRound<ListingState>(pool, taskOf(url), leaseMs);
  return begun && { look: begun.round, state: { ...noLook, ...begun.payload } };
}

/** Ends a look. False if another gateway has begun the next one. */
export function endListingLook(
  pool: pg.Pool,
  url: string,
  { look, state, dueMs }: BegunLook & { readonly dueMs: number },
): Promise<boolean> {
  return endRound(pool, taskOf(url), { round: look, dueMs, payload: state });
}

export type ReadLook = Awaited<ReturnType<typeof readListingLook>>;

/** What the looks at a discovery service have shown, and when the next one may begin, in Unix seconds. */
export async function readListingLook(pool: pg.Pool, url: string) {
  const [task] = await readTasks<ListingState>(pool, taskOf(url));
  if (!task) return { dueAtSecs: 0, state: noLook };
  return { dueAtSecs: task.dueAt.getTime() / 1_000, state: { ...noLook, ...task.payload } };
}
