import type pg from 'pg';
import { callFunction } from './functions.ts';

/** A heartbeat: to be sent several times in `silentSecs`, and before the first hold. */
export function sendHeartbeat(pool: pg.Pool, processId: string, silentSecs: number): Promise<void> {
  return callFunction(pool, 'heartbeat', [processId, silentSecs / 2]);
}

/**
 * Whether a process has sent no heartbeat for `silentSecs`. False where `by` itself had a gap in that time:
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
