import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { EventReader } from '../../payments/peers/chain/event-reader.ts';
import type { ChainTrigger, ReadAhead } from '../use-cases/triggers/chain-look.ts';
import type { Fire } from '../use-cases/triggers/fire.ts';
import { followChain } from '../use-cases/triggers/follow-chain.ts';
import { newReadAhead } from '../use-cases/triggers/read-next.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';
import { type CronTrigger, fireSchedule, type ScheduleContext } from '../use-cases/triggers/fire-schedule.ts';
import type { LastKnown } from '../../base/runtime/last-known.ts';
import { readTriggerProgress, type TriggerProgress } from '../../calls/store/trigger-cursors.ts';

/** What the workers of triggers have in common. */
interface Firing<Trigger> extends ScheduleContext {
  readonly log: OperatorLog;
  readonly triggers: () => readonly Trigger[];
  readonly fireOf: (trigger: Trigger) => Fire;
}

const nameOf = ({ name }: CronTrigger | ChainTrigger): string => name;
const roundFields = ({ name }: CronTrigger | ChainTrigger) => ({ trigger: name });

/** Reads the chains of triggers, each when it is due: one gateway at a time does. */
export function startChainFollower(
  following: Firing<ChainTrigger> & { readonly readerOf: (trigger: ChainTrigger) => EventReader },
): Loop {
  const { pool, log, counts, triggers, readerOf, fireOf } = following;
  const aheadOf = new Map<string, ReadAhead>();
  return startRounds({
    items: triggers,
    nameOf,
    run(trigger, stopping) {
      const ahead = aheadOf.get(trigger.name) ?? newReadAhead();
      aheadOf.set(trigger.name, ahead);
      const parts = { pool, log, counts, ahead, isStopping: () => stopping.aborted };
      return followChain({ ...parts, reader: readerOf(trigger), fire: fireOf(trigger) }, trigger);
    },
    pollMs: 500,
    log,
    failureMessage: 'the chains of triggers could not be looked at',
    roundFailureMessage: 'the events of a trigger could not be recorded: they are read again',
    roundFields,
  });
}

/** The database's clock may be set meanwhile, and another process may have fired. */
const longestWaitMs = 5_000;

/** Fires the times of schedules, in every process that runs workers: whichever records a time first makes its call. */
export function startScheduleFirer({ triggers, fireOf, ...context }: Firing<CronTrigger>): Loop {
  return startRounds({
    items: triggers,
    nameOf,
    run: async (trigger) => Math.min(await fireSchedule(context, trigger, fireOf(trigger)), longestWaitMs),
    pollMs: 100,
    log: context.log,
    failureMessage: 'the times of triggers could not be looked at',
    roundFailureMessage: 'the times of a trigger could not be fired: they are tried again',
    roundFields,
  });
}

/** Reads how far all gateways have brought the triggers, for the metrics of this one. */
export function startTriggerWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  known: LastKnown<TriggerProgress>,
): Loop {
  return startLoop(async () => known.learn(await readTriggerProgress(pool)), {
    pollMs: 2_000,
    log,
    failureMessage: 'how far the triggers are could not be read',
  });
}
