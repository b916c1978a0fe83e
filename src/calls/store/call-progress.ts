import type pg from 'pg';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { callFunction } from '../../ledger/store/functions.ts';
import type { LeaseName } from './calls.ts';

/** Keeps the last progress of a call; false if another lease holds it, or none, or where it is of none of these services. */
export function reportProgress(
  pool: pg.Pool,
  { callId, leaseId }: LeaseName,
  services: readonly number[],
  { fraction, message }: Pick<CallProgress, 'fraction' | 'message'>,
): Promise<boolean> {
  const held = [callId, leaseId, fraction ?? null, message ?? null, services.map(String)] as const;
  return callFunction(pool, 'report_progress', held);
}

/** Of the leases that hold their calls now. */
function heldProgress(db: LedgerDatabase) {
  return db
    .selectFrom('tollbook.call_progress as progress')
    .innerJoin('tollbook.call as call', (join) =>
      join.onRef('call.call_id', '=', 'progress.call_id').onRef('call.lease_id', '=', 'progress.lease_id'),
    )
    .where('call.status', '=', 'leased');
}

export type CallProgress = NonNullable<Awaited<ReturnType<typeof findProgress>>>;

/** What the holder of a call's lease last said, `fraction` from 0 to 1; undefined if it has said nothing. */
export async function findProgress(db: LedgerDatabase, callId: number) {
  const row = await heldProgress(db)
    .select(['progress.fraction', 'progress.message', 'progress.reported_at'])
    .where('progress.call_id', '=', callId)
    .executeTakeFirst();
  if (!row) return undefined;
  return { fraction: row.fraction ?? undefined, message: row.message ?? undefined, at: row.reported_at };
}

/** When the holders of calls' leases last reported progress, by call: one statement for all that are asked about. */
export async function readProgressTimes(
  db: LedgerDatabase,
  callIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await heldProgress(db)
    .select(['progress.call_id', 'progress.reported_at'])
    .where('progress.call_id', 'in', callIds)
    .execute();
  return new Map(rows.map((row) => [row.call_id, row.reported_at.getTime()]));
}
