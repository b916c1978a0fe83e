import type pg from 'pg';
import type { JobsContext } from '../jobs/context.ts';
import { pruneLane, pullDueTimes } from '../store/calls.ts';
import { pruneFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pruneEveryMs = 600_000;
const pullEveryMs = 60_000;
const batchSize = 500;

/** Changes or deletes up to `max` rows of a kind; returns how many. */
type Pass = (pool: pg.Pool, max: number) => Promise<number>;

/** Prunes old rows, batch by batch. By default those of calls, the lane and follow-ups. */
export function startCleaner(
  context: Pick<JobsContext, 'pool' | 'log'>,
  prunes: readonly Pass[] = [pruneLane, pruneFollowUps],
): Loop {
  return startPasses(context, prunes, pruneEveryMs, 'old rows could not be pruned');
}

/** Makes rows due that were written before the database's clock was set back. */
export function startDueTimes(context: Pick<JobsContext, 'pool' | 'log'>): Loop {
  return startPasses(context, [pullDueTimes], pullEveryMs, 'due times could not be compared with the clock');
}

function startPasses(
  { pool, log }: Pick<JobsContext, 'pool' | 'log'>,
  passes: readonly Pass[],
  pollMs: number,
  failureMessage: string,
): Loop {
  return startLoop(
    async () => {
      let changed = 0;
      for (const pass of passes) changed += await pass(pool, batchSize);
      return changed > 0;
    },
    { pollMs, log, failureMessage },
  );
}
