import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import type { CallLease } from '../../calls/store/calls.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/** A leased call that sells credit. */
export interface TopUpLease extends CallLease {
  /** Its age has ended. */
  readonly isTooOld: boolean;
}

/**
 * Takes up to `max` calls of these jobs that are due, oldest first, for `leaseSecs`. With `isProven`, only calls whose
 * payment was seen on chain, not those that only a facilitator reports as paid; those older than `maxAgeSecs` in any case.
 */
export async function leaseTopUps(
  pool: pg.Pool,
  jobs: readonly JobId[],
  {
    max,
    leaseSecs,
    isProven,
    maxAgeSecs,
  }: {
    readonly max: number;
    readonly leaseSecs: number;
    readonly isProven: boolean;
    readonly maxAgeSecs: number;
  },
): Promise<TopUpLease[]> {
  const list = jobs.map(({ serviceId, jobIndex }) => ({ service_id: serviceId, job_index: jobIndex }));
  const rows = await callTableFunction(pool, 'lease_top_ups', [list, max, leaseSecs, isProven, maxAgeSecs]);
  return rows.map(({ call_id, lease_id, attempt, failures, stream, is_too_old }) => ({
    callId: call_id,
    leaseId: lease_id,
    attempt,
    failures,
    stream,
    isTooOld: is_too_old,
  }));
}

/**
 * Reads up to `max` events that no process has read yet and inserts a follow-up `reverse_top_up` for each settlement that
 * failed late and for each refund. Returns how many events it read.
 */
export function collectTopUpReversals(pool: pg.Pool, max: number): Promise<number> {
  return callFunction(pool, 'collect_top_up_reversals', [max]);
}

/** A credit movement that was requested under an id, and done. */
export interface CreditRequest {
  readonly accountId: number;
  readonly amountMicros: bigint;
  /** The account's balance after it. */
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
