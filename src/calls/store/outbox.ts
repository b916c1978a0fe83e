import { sql } from 'kysely';
import type { LedgerDatabase } from '../../ledger/store/database.ts';

/** The state of a call of the outbox: a runner can take it, has it, gets it again later, or gets it after another of its order key. */
export const outboxPlaces = ['due', 'leased', 'later', 'held'] as const;
export type OutboxPlace = (typeof outboxPlaces)[number];

const place = sql<OutboxPlace>`case when waits then 'held' when due_at <= tollbook.clock() then 'due'
  when status = 'leased' then 'leased' else 'later' end`;

function openCalls(db: LedgerDatabase) {
  return db.selectFrom('tollbook.call').where('status', 'in', ['ready', 'leased']);
}

export type OutboxCount = Awaited<ReturnType<typeof countOutbox>>[number];

/**
 * The outbox by service and place, and when the first call of each is due. Reads every call of it: `[limits] max_outstanding_calls` bounds
 * how many there are.
 */
export function countOutbox(db: LedgerDatabase) {
  return openCalls(db)
    .select(['service_id as serviceId', place.as('place')])
    .select(({ fn }) => [fn.countAll<number>().as('calls'), fn.min('due_at').as('first')])
    .groupBy(['service_id', 'place'])
    .orderBy('service_id')
    .execute();
}

export interface OutboxFilter {
  readonly place?: OutboxPlace | undefined;
  readonly services?: readonly number[] | undefined;
}

export type OutboxCall = Awaited<ReturnType<typeof listOutbox>>[number];

/** Up to `max` calls of the outbox after a call id, the oldest first. */
export function listOutbox(db: LedgerDatabase, filter: OutboxFilter, afterCallId: number, max: number) {
  return openCalls(db)
    .select(['call_id as callId', 'stream', 'service_id as serviceId', 'job_index as jobIndex'])
    .select(['attempt', 'failures', 'created_at as createdAt', 'due_at as dueAt', place.as('place')])
    .select(['last_reason as reason', 'last_runner as runner', 'last_error as error'])
    .$if(filter.place !== undefined, (calls) => calls.where(place, '=', filter.place ?? 'due'))
    .$if(filter.services !== undefined, (calls) =>
      calls.where('service_id', 'in', [...(filter.services ?? [])]),
    )
    .where('call_id', '>', afterCallId)
    .orderBy('call_id')
    .limit(max)
    .execute();
}
