import type pg from 'pg';
import { queriesOn } from './database.ts';
import { callFunction, callTableFunction } from './functions.ts';

/** Names the tasks that workers do in rounds, one process at a time. */
export interface TaskName {
  readonly kind: 'chain_trigger' | 'listing' | 'rate' | 'schedule';
  /** What the task is about. Tasks of one queue belong to different configurations of it. */
  readonly queue: string;
  readonly key: string;
}

export interface BegunRound<Payload> {
  /** The fencing token. */
  readonly round: number;
  /** What the last round that ended has left; empty before the first. */
  readonly payload: Partial<Payload>;
  /** When a round ended without an error last; if none has, when the first began. */
  readonly okAt: Date;
  readonly begunAt: Date;
}

/** Begins the next round of a task; undefined if it is not due, or another process has it. */
export async function beginRound<Payload>(
  pool: pg.Pool,
  { kind, queue, key }: TaskName,
  leaseMs: number,
): Promise<BegunRound<Payload> | undefined> {
  const [row] = await callTableFunction(pool, 'begin_round', [kind, queue, key, leaseMs]);
  if (!row) return undefined;
  // written by `endRound`
  const payload = row.payload as Partial<Payload>;
  return { round: row.round, payload, okAt: row.ok_at, begunAt: row.begun_at };
}

export interface EndedRound<Payload> {
  readonly round: number;
  /** When the next round may begin. */
  readonly dueMs: number;
  readonly payload: Payload;
  /** Why the round did not end well; undefined if it did. */
  readonly error?: string | undefined;
}

/** Ends a round. False if another process has begun the next one. */
export function endRound<Payload extends object>(
  pool: pg.Pool,
  { kind, queue, key }: TaskName,
  { round, dueMs, payload, error }: EndedRound<Payload>,
): Promise<boolean> {
  return callFunction(pool, 'end_round', [kind, queue, key, round, dueMs, payload, error ?? null]);
}

/** A process still works on its round. False if another process has begun the next round. */
export function renewRound(
  pool: pg.Pool,
  { kind, queue, key }: TaskName,
  round: number,
  leaseMs: number,
): Promise<boolean> {
  return callFunction(pool, 'renew_round', [kind, queue, key, round, leaseMs]);
}

/** What the rounds of a task have found. */
export interface TaskState<Payload> {
  readonly queue: string;
  readonly key: string;
  readonly payload: Partial<Payload>;
  readonly error: string | undefined;
  readonly okAt: Date;
  readonly dueAt: Date;
}

/** All tasks of a kind, those of one queue, or the one with this key. */
export async function readTasks<Payload>(
  pool: pg.Pool,
  { kind, queue, key }: Pick<TaskName, 'kind'> & Partial<TaskName>,
): Promise<TaskState<Payload>[]> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.task')
    .select(['queue', 'key', 'payload', 'error', 'ok_at', 'due_at'])
    .where('kind', '=', kind)
    .$if(queue !== undefined, (query) => query.where('queue', '=', queue ?? ''))
    .$if(key !== undefined, (query) => query.where('key', '=', key ?? ''))
    .execute();
  return rows.map((row) => ({
    queue: row.queue,
    key: row.key,
    // written by `endRound`
    payload: row.payload as Partial<Payload>,
    error: row.error ?? undefined,
    okAt: row.ok_at,
    dueAt: row.due_at,
  }));
}

/** What is sent until it was taken. */
export interface Message<Payload> {
  /** Another one than that of the message that it replaced. */
  readonly messageId: number;
  /** This one included. */
  readonly tries: number;
  readonly createdAt: Date;
  readonly payload: Payload;
}

/** Takes up to `max` messages of a queue that are due: they become due again, later after each try, until they are ended. */
export async function takeMessages<Payload>(
  pool: pg.Pool,
  kind: 'alert_message',
  queue: string,
  max: number,
): Promise<Message<Payload>[]> {
  const rows = await callTableFunction(pool, 'take_messages', [kind, queue, max, null]);
  return rows.map((row) => ({
    messageId: row.task_id,
    tries: row.tries,
    createdAt: row.created_at,
    payload: row.payload as Payload,
  }));
}

/** The message was taken, or has no receiver. */
export function endMessage(pool: pg.Pool, messageId: number): Promise<void> {
  return callFunction(pool, 'end_message', [messageId]);
}

/** The message was not taken: it becomes due again, later after each try. */
export function returnMessage(pool: pg.Pool, messageId: number): Promise<void> {
  return callFunction(pool, 'return_message', [messageId]);
}
