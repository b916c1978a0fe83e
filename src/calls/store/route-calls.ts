import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { callTableFunction } from '../../ledger/store/functions.ts';
import { type CallLease, callLeaseOf, type LeasedCall, paidOriginOf } from './calls.ts';

/** The lease of a call whose client asks for its answer: with all that its upstream receives, but for the body. */
export type RouteLease = Omit<LeasedCall, 'contentType' | 'body'>;

/** Takes the call of a route for `leaseSecs`; undefined where another request has it, or where it has ended or is not paid. */
export async function leaseRouteCall(
  pool: pg.Pool,
  callId: number,
  { leaseSecs, maxAgeSecs }: { readonly leaseSecs: number; readonly maxAgeSecs: number },
): Promise<RouteLease | undefined> {
  const [row] = await callTableFunction(pool, 'lease_call', [callId, leaseSecs, maxAgeSecs]);
  if (!row) return undefined;
  return {
    ...callLeaseOf(row),
    origin: paidOriginOf(row),
    idempotencyKey: row.payment,
    leaseUntil: row.lease_until,
    traceparent: row.traceparent ?? undefined,
  };
}

/**
 * The ids of up to `max` calls that routes have made of these jobs, which no runner has, and which no paid request can wait for: its payment was
 * recorded as failed, is settled with another end, or is gone.
 */
export async function findUnawaitedCalls(
  db: LedgerDatabase,
  jobs: readonly JobId[],
  max: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom('tollbook.call as made')
    .select('made.call_id')
    .where('made.status', 'in', ['ready', 'dead'])
    .where('made.trigger_kind', '=', 'route')
    .where(({ or, and, eb }) =>
      or(
        jobs.map(({ serviceId, jobIndex }) =>
          and([eb('made.service_id', '=', serviceId), eb('made.job_index', '=', jobIndex)]),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('tollbook.call as paid')
            .select('paid.call_id')
            .where('paid.status', 'in', ['pending', 'ready', 'leased'])
            .where('paid.trigger_kind', 'is', null)
            .whereRef(
              ({ fn, ref }) => fn.coalesce(ref('paid.idempotency_key'), ref('paid.payment')),
              '=',
              'made.trigger_id',
            ),
        ),
      ),
    )
    .orderBy('made.call_id')
    .limit(max)
    .execute();
  return rows.map(({ call_id: callId }) => callId);
}

export interface UnrepeatedCall extends CallLease {
  /** Its last attempt ended because its client had left in the middle of an answer. */
  readonly leftByClient: boolean;
}

/** Takes up to `max` calls of routes that no client can repeat any more. */
export async function takeUnrepeatedCalls(
  pool: pg.Pool,
  routes: readonly (JobId & { readonly retrySecs: number })[],
  { max, leaseSecs }: { readonly max: number; readonly leaseSecs: number },
): Promise<UnrepeatedCall[]> {
  const jobs = routes.map(({ serviceId, jobIndex, retrySecs }) => ({
    service_id: serviceId,
    job_index: jobIndex,
    after_secs: retrySecs,
  }));
  const rows = await callTableFunction(pool, 'take_unrepeated_calls', [jobs, max, leaseSecs]);
  return rows.map((row) => ({ ...callLeaseOf(row), leftByClient: row.left_by_client }));
}
