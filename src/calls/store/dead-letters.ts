import type { JobId } from '../../base/values/job.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { defined } from '../../ledger/store/expressions.ts';
import { isNotRefunded } from '../../ledger/store/payments.ts';

/** Which dead letters are meant: those that match every member that is set. */
export interface DeadLetterFilter {
  readonly serviceId?: number | undefined;
  readonly jobIndex?: number | undefined;
  /** As the ledger has it. */
  readonly reason?: string | undefined;
  readonly runner?: string | undefined;
  /** Dead since then or later. */
  readonly since?: Date | undefined;
  /** Dead before that. */
  readonly before?: Date | undefined;
  /** False: without those whose payment was wholly refunded, by the read model. */
  readonly isRefunded?: false | undefined;
}

/** A dead letter, as far as its cause needs it. */
export type DeadLetterRow = Awaited<ReturnType<typeof findDeadLetters>>[number];

/** Up to `max` dead letters after a call id, in the order of their ids. */
export async function findDeadLetters(
  db: LedgerDatabase,
  { serviceId, jobIndex, reason, runner, since, before, isRefunded }: DeadLetterFilter,
  afterCallId: number,
  max: number,
) {
  return db
    .selectFrom('tollbook.call')
    .select([
      'call_id as callId',
      'stream',
      'service_id as serviceId',
      'job_index as jobIndex',
      'last_reason as reason',
      'last_runner as runner',
      'last_error as error',
      'due_at as deadSince',
    ])
    .where('status', '=', 'dead')
    .where('call_id', '>', afterCallId)
    .where(({ and }) =>
      and(defined({ service_id: serviceId, job_index: jobIndex, last_reason: reason, last_runner: runner })),
    )
    .$if(since !== undefined, (calls) => calls.where('due_at', '>=', since ?? new Date(0)))
    .$if(before !== undefined, (calls) => calls.where('due_at', '<', before ?? new Date(0)))
    .$if(isRefunded === false, (calls) => calls.where(isNotRefunded(db)))
    .orderBy('call_id')
    .limit(max)
    .execute();
}

/** The ids of up to `max` dead letters of a job that are dead since before a time, the oldest first. Reads no others. */
export async function findOldDeadLetters(
  db: LedgerDatabase,
  { serviceId, jobIndex }: JobId,
  before: Date,
  max: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom('tollbook.call')
    .select('call_id')
    .where('status', '=', 'dead')
    .where('service_id', '=', serviceId)
    .where('job_index', '=', jobIndex)
    .where('due_at', '<', before)
    // all of them, so that the index is in this order
    .orderBy('service_id')
    .orderBy('job_index')
    .orderBy('due_at')
    .limit(max)
    .execute();
  return rows.map((row) => row.call_id);
}
