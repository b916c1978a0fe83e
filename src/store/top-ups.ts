import pg from 'pg';
import type { JobId } from '../domain/payments/job.ts';
import type { CallLease } from './calls.ts';
import { queriesOn } from './database.ts';

/**
 * Takes up to `max` calls that are due of these jobs, oldest first, for `leaseSecs`. `isProven` leaves those alone that only
 * a facilitator says are paid. One simple-protocol message, like all here: it locks rows that the lane may want.
 */
export async function leaseTopUps(
  pool: pg.Pool,
  jobs: readonly JobId[],
  asked: { readonly max: number; readonly leaseSecs: number; readonly isProven: boolean },
): Promise<CallLease[]> {
  const { max, leaseSecs, isProven } = asked;
  const list = JSON.stringify(
    jobs.map(({ serviceId, jobIndex }) => ({ service_id: serviceId, job_index: jobIndex })),
  );
  const numbers = `${Math.trunc(max)}, ${Math.trunc(leaseSecs)}, ${isProven}`;
  const { rows } = await pool.query<{
    call_id: number;
    lease_id: string;
    attempt: number;
    failures: number;
    stream: string;
  }>(`select * from tollbook.lease_top_ups(${pg.escapeLiteral(list)}, ${numbers})`);
  return rows.map(({ call_id, lease_id, attempt, failures, stream }) => ({
    callId: call_id,
    leaseId: lease_id,
    attempt,
    failures,
    quoteDigest: stream,
  }));
}

/**
 * Looks through up to `max` events that no process has looked through for settlements that failed late, and notes those as
 * follow-ups `reverse_top_up`. Returns how many events that were.
 */
export async function collectTopUpReversals(pool: pg.Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ read: number }>(
    `select tollbook.collect_top_up_reversals(${Math.trunc(max)}) as read`,
  );
  return rows[0]?.read ?? 0;
}

/** A move of credit that was asked for under a name, and done. */
export interface CreditRequest {
  readonly accountId: number;
  readonly amountMicros: bigint;
  /** What the account could spend then. */
  readonly balanceMicros: bigint;
}

export async function findCreditRequest(
  pool: pg.Pool,
  requestId: string,
): Promise<CreditRequest | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.credit_request')
    .select(['account_id', 'amount', 'balance'])
    .where('request_id', '=', requestId)
    .executeTakeFirst();
  return (
    row && {
      accountId: row.account_id,
      amountMicros: BigInt(row.amount),
      balanceMicros: BigInt(row.balance),
    }
  );
}
