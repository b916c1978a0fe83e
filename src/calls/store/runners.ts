import type pg from 'pg';
import { callFunction } from '../../ledger/store/functions.ts';

/**
 * Notes that a runner answered 410 to a call; a call that was noted before counts as before. Returns how many calls of the runner
 * were first noted after `since` and within the last seconds.
 */
export function noteGone(
  pool: pg.Pool,
  noted: {
    readonly runner: string;
    readonly callId: number;
    readonly since: Date;
    readonly withinSecs: number;
  },
): Promise<number> {
  const { runner, callId, since, withinSecs } = noted;
  return callFunction(pool, 'note_runner_gone', [runner, callId, since, withinSecs]);
}
