import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { presence } from '../../base/values/presence.ts';
import { areWorkersAlive, sendWorkerHeartbeat } from '../store/processes.ts';
import { type Loop, startLoop } from './loop.ts';

/** Whether any process on this ledger runs the workers. */
export interface WorkerWatch {
  check(): { readonly ok: boolean; readonly detail?: string };
  start(): Loop;
}

const missing =
  'no process runs the workers: calls are not pushed to runners, and open settlements and alerts wait; start one with ' +
  '`tollbook serve --workers only`';

/** Shows the other processes that this one runs the workers, or looks whether another one does. */
export function createWorkerWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  runsWorkers: boolean,
): WorkerWatch {
  const processId = randomUUID();
  let areAlive = true;

  const look = async (): Promise<void> => {
    const wereAlive = areAlive;
    areAlive = await areWorkersAlive(pool, presence.silentSecs);
    if (wereAlive && !areAlive) log.error({ detail: missing }, 'no process runs the workers');
    if (!wereAlive && areAlive) log.info({}, 'a process runs the workers again');
  };

  return {
    check: () => (areAlive ? { ok: true } : { ok: false, detail: missing }),
    start: () =>
      startLoop(() => (runsWorkers ? sendWorkerHeartbeat(pool, processId) : look()), {
        pollMs: presence.heartbeatMs,
        log,
        failureMessage: 'whether a process runs the workers could not be read or written',
      }),
  };
}
