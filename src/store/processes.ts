import type pg from 'pg';

/** A heartbeat: to be sent several times in `silentSecs`, and before the first hold. */
export async function sendHeartbeat(pool: pg.Pool, processId: string, silentSecs: number): Promise<void> {
  await pool.query('select tollbook.heartbeat($1, $2)', [processId, silentSecs / 2]);
}

/**
 * Whether a process has sent no heartbeat for `silentSecs`. False where `by` itself had a gap in that time:
 * then it, or the database, was unreachable, and other processes may have been too.
 */
export async function isProcessSilent(
  pool: pg.Pool,
  asked: { readonly processId: string; readonly by: string; readonly silentSecs: number },
): Promise<boolean> {
  const { rows } = await pool.query<{ is_silent: boolean }>(
    'select tollbook.is_process_silent($1, $2, $3) as is_silent',
    [asked.processId, asked.by, asked.silentSecs],
  );
  return rows[0]?.is_silent ?? false;
}
