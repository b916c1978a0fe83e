import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Fire } from '../use-cases/triggers/fire.ts';
import { type CronTrigger, fireSchedule, type ScheduleContext } from '../use-cases/triggers/fire-schedule.ts';
import { LedgerInconsistentError } from '../../ledger/store/halt.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 100;
/** The database's clock may be set meanwhile, and another process may have fired. */
const longestWaitMs = 5_000;

export interface ScheduleFiring extends ScheduleContext {
  readonly log: OperatorLog;
  readonly triggers: () => readonly CronTrigger[];
  readonly fireOf: (trigger: CronTrigger) => Fire;
}

/** Fires the times of schedules, in every process that runs workers: whichever records a time first makes its call. */
export function startScheduleFirer({ triggers, fireOf, ...context }: ScheduleFiring): Loop {
  const { log } = context;
  const dueMs = new Map<string, number>();
  const firing = new Map<string, Promise<void>>();
  return startLoop(
    async () => {
      for (const trigger of triggers()) {
        const { name } = trigger;
        if (firing.has(name) || performance.now() < (dueMs.get(name) ?? 0)) continue;
        const fired = fireSchedule(context, trigger, fireOf(trigger))
          .then((inMs) => void dueMs.set(name, performance.now() + Math.min(inMs, longestWaitMs)))
          .catch((error: unknown) => {
            dueMs.set(name, performance.now() + 1_000);
            // a halted ledger was logged once already
            if (error instanceof LedgerInconsistentError) return;
            log.warn(
              { err: error, trigger: name },
              'the times of a trigger could not be fired: they are tried again',
            );
          })
          .finally(() => firing.delete(name));
        firing.set(name, fired);
      }
    },
    {
      pollMs,
      log,
      failureMessage: 'the times of triggers could not be looked at',
      onStopped: () => Promise.all(firing.values()),
    },
  );
}
