import type { JobsContext } from '../jobs/context.ts';
import { checkReadiness, notReadyYet, type Readiness } from '../jobs/readiness.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 5_000;

/**
 * Checks the readiness that `/x402/ready` answers with, so that a request for it is free, and refreshes the process's reading of
 * the database's clock.
 */
export function startReadinessChecker(
  current: () => JobsContext,
  pendingMigrations: () => Promise<readonly string[]>,
  onReadiness: (readiness: Readiness) => void,
): Loop {
  let last = notReadyYet;
  return startLoop(
    async () => {
      const context = current();
      void context.lane.refresh();
      const next = await checkReadiness(context, pendingMigrations);
      if (next.status !== last.status) context.log.warn({ readiness: next }, `gateway is ${next.status}`);
      last = next;
      onReadiness(next);
    },
    { pollMs, log: current().log, failureMessage: 'readiness could not be checked' },
  );
}
