import type { JobsContext } from '../use-cases/context.ts';
import { type CheckedJobs, checkJobs } from '../use-cases/jobs-status.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 5_000;

/**
 * Checks what `/status` tells about paid jobs, so that a request for it asks no peer, and refreshes the process's reading of the
 * database's clock.
 */
export function startJobsStatusChecker(
  current: () => JobsContext,
  onChecked: (checked: CheckedJobs) => void,
): Loop {
  return startLoop(
    async () => {
      const context = current();
      void context.lane.refresh();
      const checked = await checkJobs(context);
      // while the database cannot be read, nothing is known
      context.runnerSilence.observe(checked.queue?.waiting ?? []);
      onChecked(checked);
    },
    { pollMs, log: current().log, failureMessage: 'the state of the paid jobs could not be checked' },
  );
}
