import type pg from 'pg';
import { sql } from 'kysely';
import { queriesOn } from './database.ts';
import { callFunction } from './functions.ts';

/** A heartbeat: to be sent several times in `silentSecs`, and before the first hold. */
export function sendHeartbeat(pool: pg.Pool, processId: string, silentSecs: number): Promise<void> {
  return callFunction(pool, 'heartbeat', [processId, silentSecs / 2]);
}

/**
 * Whether a process has sent no heartbeat for `silentSecs`. False if `by` itself had a gap in that time:
 * then it, or the database, was unreachable, and other processes may have been too.
 */
export function isProcessSilent(
  pool: pg.Pool,
  {
    processId,
    by,
    silentSecs,
  }: { readonly processId: string; readonly by: string; readonly silentSecs: number },
): Promise<boolean> {
  return callFunction(pool, 'is_process_silent', [processId, by, silentSecs]);
}

/** A heartbeat of a live gateway: fails if the database takes no writes. */
export function sendGatewayHeartbeat(pool: pg.Pool, processId: string): Promise<void> {
  return callFunction(pool, 'gateway_heartbeat', [processId]);
}

/** Takes a gateway's heartbeats back: it has ended. */
export function forgetGateway(pool: pg.Pool, processId: string): Promise<void> {
  return callFunction(pool, 'forget_gateway', [processId]);
}

/** The last heartbeat of each live gateway that has not ended in order, by its process: to be compared, not to be read as a time. */
export async function readGatewayHeartbeats(pool: pg.Pool): Promise<ReadonlyMap<string, string>> {
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.gateway_process')
    .select(['process_id', sql<string>`heartbeat_at::text`.as('at')])
    .execute();
  return new Map(rows.map(({ process_id: process, at }) => [process, at]));
}

/** A heartbeat of a process that runs the workers. */
export function sendWorkerHeartbeat(pool: pg.Pool, processId: string): Promise<void> {
  return callFunction(pool, 'worker_heartbeat', [processId]);
}

/** Whether any process ran the workers within the last seconds. */
export async function areWorkersAlive(pool: pg.Pool, silentSecs: number): Promise<boolean> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.worker_process')
    .select('process_id')
    .where('heartbeat_at', '>', sql<Date>`tollbook.clock() - ${silentSecs} * interval '1 second'`)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
