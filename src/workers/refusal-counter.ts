import type { JobsContext } from '../jobs/context.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;

/** Records the sums of refusals once a second, and once more when it stops. A crash loses at most one second of them. */
export function startRefusalCounter({
  lane,
  log,
  refusalTally,
}: Pick<JobsContext, 'lane' | 'log' | 'refusalTally'>): Loop {
  return startLoop(() => refusalTally.record(lane), {
    pollMs,
    log,
    failureMessage: 'the sums of refusals could not be recorded: they are kept for the next attempt',
    onStopped: () => refusalTally.record(lane),
  });
}
