import type pg from 'pg';
import { sql } from 'kysely';
import { type AlertCondition, resolvedText } from '../../base/values/alert-condition.ts';
import type { LedgerDatabase } from './database.ts';
import { callFunction, callTableFunction } from './functions.ts';
import { isNotRefunded } from './payments.ts';
import { takeMessages } from './tasks.ts';

export interface AlertReport {
  /** The process that reports. */
  readonly processId: string;
  readonly conditions: readonly (AlertCondition & { readonly isTold?: boolean })[];
  /** Whether the process could look at everything: else nothing is resolved by its report. */
  readonly isComplete: boolean;
  /** Where the alerts go. */
  readonly receivers: readonly string[];
  readonly repeatSecs: number;
  /** A condition that no process has reported for this long is resolved. */
  readonly quietSecs: number;
}

/** A state that has begun with a report. */
export type AlertChange = Pick<QueuedAlert, 'kind' | 'subject' | 'status' | 'text'>;

/** Reports the conditions that a process sees. `isSender`: this process tells the operator, should the database be away next. */
export async function reportAlerts(
  pool: pg.Pool,
  { processId, conditions, isComplete, receivers, repeatSecs, quietSecs }: AlertReport,
): Promise<{ readonly isSender: boolean; readonly changes: readonly AlertChange[] }> {
  const seen = conditions.map(({ details = {}, isTold, ...condition }) => ({
    ...condition,
    details,
    is_told: isTold,
  }));
  const args = [processId, seen, isComplete, receivers, repeatSecs, quietSecs] as const;
  const rows = await callTableFunction(pool, 'report_alerts', args);
  const changes = rows.flatMap(({ kind, subject, status, text }) =>
    kind === null || subject === null || status === null || text === null
      ? []
      : [presented({ kind, subject, status, text })],
  );
  return { isSender: rows.at(-1)?.is_sender === true, changes };
}

/** The message of a condition that has ended says what is well again, not the sentence with which it began. */
function presented<A extends AlertChange>(alert: A): A {
  const { kind, subject, status } = alert;
  return status === 'resolved' ? { ...alert, text: resolvedText(kind, subject) } : alert;
}

/** An alert for the receivers. */
export interface QueuedAlert {
  readonly kind: string;
  readonly subject: string;
  readonly status: 'firing' | 'resolved';
  readonly text: string;
  readonly details: object;
  /** The id of its messages. */
  readonly id: string;
}

/** A condition that lasts. */
export interface FiringAlert extends Pick<QueuedAlert, 'kind' | 'subject' | 'text'> {
  readonly since: Date;
}

/** The conditions that last now, those that began first on top. */
export function listFiringAlerts(db: LedgerDatabase): Promise<FiringAlert[]> {
  return db
    .selectFrom('tollbook.alert')
    .select(['kind', 'subject', 'text', 'since'])
    .where('is_firing', '=', true)
    .orderBy('since')
    .execute();
}

/** Queues an alert for the receivers, in place of an earlier one of the same kind and subject that was not sent yet. */
export async function queueAlert(
  pool: pg.Pool,
  receivers: readonly string[],
  { kind, subject, status, text, details, id }: QueuedAlert,
): Promise<void> {
  if (receivers.length === 0) return;
  await callFunction(pool, 'queue_alert', [receivers, kind, subject, status, text, details, null, id]);
}

/** What a receiver is still to be told. */
interface StoredAlert extends AlertChange {
  readonly details: object;
  readonly since: string;
  /** What a receiver recognises a repeated message by; null: made of the number of the message. */
  readonly id: string | null;
}

/** Takes up to `max` messages for a receiver. They become due again until they are ended. */
export async function takeAlertMessages(pool: pg.Pool, receiver: string, max: number) {
  const messages = await takeMessages<StoredAlert>(pool, 'alert_message', receiver, max);
  return messages.map(({ messageId, tries, createdAt, payload: { since, ...alert } }) => ({
    ...presented(alert),
    since: new Date(since),
    message_id: messageId,
    tries,
    created_at: createdAt,
  }));
}

/** Of this many dead letters, the newest, those of each service are counted. */
export const countedDeadLetters = 10_000;

/** The services with dead letters, with their number and the newest one. */
export async function countDeadLetters(db: LedgerDatabase) {
  return db
    .selectFrom(
      db
        .selectFrom('tollbook.call')
        .select(['call_id', 'service_id', 'last_reason', 'last_runner', 'last_error'])
        .where('status', '=', 'dead')
        .where(isNotRefunded(db))
        .orderBy('call_id', 'desc')
        .limit(countedDeadLetters)
        .as('newest'),
    )
    .select(({ fn, ref }) => [
      'service_id',
      fn.countAll<number>().as('calls'),
      fn.max('call_id').as('call_id'),
      sql<string | null>`(array_agg(${ref('last_reason')} order by ${ref('call_id')} desc))[1]`.as('reason'),
      sql<string | null>`(array_agg(${ref('last_runner')} order by ${ref('call_id')} desc))[1]`.as('runner'),
      sql<string | null>`(array_agg(${ref('last_error')} order by ${ref('call_id')} desc))[1]`.as('error'),
    ])
    .groupBy('service_id')
    .execute();
}
