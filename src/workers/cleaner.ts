import type pg from 'pg';
import type { JobsContext } from '../jobs/context.ts';
import { pruneLane } from '../store/calls.ts';
import { pruneFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 600_000;
const piece = 500;

/** Drops up to `max` rows of a kind; returns how many went. */
type Sweep = (pool: pg.Pool, max: number) => Promise<number>;

/** Drops what nothing can need again, piece by piece. By default what calls and the lane leave behind. */
export function startCleaner(
  { pool, log }: Pick<JobsContext, 'pool' | 'log'>,
  sweeps: readonly Sweep[] = [pruneLane, pruneFollowUps],
): Loop {
  return startLoop(
    async () => {
      let swept = 0;
      for (const dropSome of sweeps) swept += await dropSome(pool, piece);
      return swept > 0;
    },
    { pollMs, log, failureMessage: 'old rows could not be pruned' },
  );
}
