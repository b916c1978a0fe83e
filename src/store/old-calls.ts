import type pg from 'pg';
import type { JobId } from '../domain/payments/job.ts';
import type { CallLease } from './calls.ts';
import { callTableFunction } from './functions.ts';

export interface OldCalls {
  /** Whose calls are not meant. */
  readonly except: readonly JobId[];
  readonly max: number;
  readonly maxAgeSecs: number;
  readonly leaseSecs: number;
}

/**
 * Takes up to `max` calls that were enqueued `maxAgeSecs` ago or earlier, the oldest first, from whoever had them. It costs them no attempt. Each has
 * one taker at a time.
 */
export async function takeOldCalls(
  pool: pg.Pool,
  { except, max, maxAgeSecs, leaseSecs }: OldCalls,
): Promise<CallLease[]> {
  const jobs = except.map(({ serviceId, jobIndex }) => ({ service_id: serviceId, job_index: jobIndex }));
  const rows = await callTableFunction(pool, 'take_old_calls', [jobs, max, maxAgeSecs, leaseSecs]);
  return rows.map((row) => ({
    callId: row.call_id,
    leaseId: row.lease_id,
    attempt: row.attempt,
    failures: row.failures,
    stream: row.stream,
    serviceId: row.service_id,
    jobIndex: row.job_index,
  }));
}

/** How long ago the oldest call of a state was enqueued; undefined where there is none. */
export interface OldestCalls {
  /** Of those that no runner has, in whatever order or after whatever pause they wait. */
  readonly enqueuedMs: number | undefined;
  /** Of those with a lease. */
  readonly leasedMs: number | undefined;
}

export async function readOldestCalls(pool: pg.Pool): Promise<OldestCalls> {
  // raw SQL: the first entry of each state in the index, so that a long queue is not read
  const { rows } = await pool.query<{ status: string; age_ms: number }>(`
    select state.status, extract(epoch from tollbook.clock() - oldest.enqueued_at)::float8 * 1000 as age_ms
    from (values ('ready'), ('leased')) as state(status) cross join lateral (
      select enqueued_at from tollbook.call where call.status = state.status and call.status in ('ready', 'leased')
      order by call.status, enqueued_at limit 1) oldest`);
  const ages = new Map(rows.map(({ status, age_ms: ageMs }) => [status, Math.max(0, Math.round(ageMs))]));
  return { enqueuedMs: ages.get('ready'), leasedMs: ages.get('leased') };
}
