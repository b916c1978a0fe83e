import type pg from 'pg';
import type { JobsContext } from '../jobs/context.ts';
import { pruneLane } from '../store/calls.ts';
import { pruneFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 600_000;
const batchSize = 500;

/** Deletes up to `max` rows of a kind; returns how many. */
type Prune = (pool: pg.Pool, max: number) => Promise<number>;

/** Prunes old rows, batch by batch. By default those of calls, the lane and follow-ups. */
export function startCleaner(
  { pool, log }: Pick<JobsContext, 'pool' | 'log'>,
  prunes: readonly Prune[] = [pruneLane, pruneFollowUps],
): Loop {
  return startLoop(
    async () => {
      let pruned = 0;
      for (const prune of prunes) pruned += await prune(pool, batchSize);
      return pruned > 0;
    },
    { pollMs, log, failureMessage: 'old rows could not be pruned' },
  );
}
