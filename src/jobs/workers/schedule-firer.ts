import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Fire } from '../use-cases/triggers/fire.ts';
import { type CronTrigger, fireSchedule, type ScheduleContext } from '../use-cases/triggers/fire-schedule.ts';
import type { Loop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';

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
  return startRounds({
    items: triggers,
    nameOf: ({ name }) => name,
    run: async (trigger) => Math.min(await fireSchedule(context, trigger, fireOf(trigger)), longestWaitMs),
    pollMs,
    log: context.log,
    failureMessage: 'the times of triggers could not be looked at',
    roundFailureMessage: 'the times of a trigger could not be fired: they are tried again',
    roundFields: ({ name }) => ({ trigger: name }),
  });
}
