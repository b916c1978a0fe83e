import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import { type CallLease, callLeaseOf } from './calls.ts';
import { callTableFunction } from '../../ledger/store/functions.ts';

export interface OldCalls {
  /** Whose calls are not meant. */
  readonly except: readonly JobId[];
  readonly max: number;
  readonly maxAgeSecs: number;
  readonly leaseSecs: number;
}

/**
 * Takes up to `max` calls that were enqueued `maxAgeSecs` ago or earlier, the oldest first, also those that runners have. It costs them no attempt. Each has
 * one taker at a time.
 */
export async function takeOldCalls(
  pool: pg.Pool,
  { except, max, maxAgeSecs, leaseSecs }: OldCalls,
): Promise<CallLease[]> {
  const jobs = except.map(({ serviceId, jobIndex }) => ({ service_id: serviceId, job_index: jobIndex }));
  const rows = await callTableFunction(pool, 'take_old_calls', [jobs, max, maxAgeSecs, leaseSecs]);
  return rows.map(callLeaseOf);
}

export type OldestCalls = Awaited<ReturnType<typeof readOldestCalls>>;

export const noOldestCalls: OldestCalls = {
  undecidedMs: undefined,
  watchedMs: undefined,
  enqueuedMs: undefined,
  leasedMs: undefined,
};

/** How long the oldest call is in each open state, from its start or since it was enqueued; undefined if there is none. */
export async function readOldestCalls(pool: pg.Pool) {
  // raw SQL: the first entry of each state in the index, so that a long queue is not read; of payments without an outcome there are few
  const { rows } = await pool.query<{ status: string; age_ms: number }>(`
    select state.status, extract(epoch from tollbook.clock() - oldest.enqueued_at)::float8 * 1000 as age_ms
    from (values ('ready'), ('leased')) as state(status) cross join lateral (
      select enqueued_at from tollbook.call where call.status = state.status and call.status in ('ready', 'leased')
      order by call.status, enqueued_at limit 1) oldest
    union all
    select case status when 'watched' then status else 'undecided' end,
      extract(epoch from tollbook.clock() - min(created_at))::float8 * 1000
    from tollbook.call where status in ('pending', 'watched', 'unpaid') group by 1`);
  const ages = new Map(rows.map(({ status, age_ms: ageMs }) => [status, Math.max(0, Math.round(ageMs))]));
  return {
    /** Its payment has no known outcome. */
    undecidedMs: ages.get('undecided'),
    /** Its payment failed and may still land. */
    watchedMs: ages.get('watched'),
    /** No runner has it, in whatever order or after whatever pause it waits. */
    enqueuedMs: ages.get('ready'),
    leasedMs: ages.get('leased'),
  };
}
