import type { JobsContext } from '../../jobs/use-cases/context.ts';
import { followRefunds } from '../use-cases/refunds/end-refund.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

/** Ends started refunds once the chain shows their end. */
export function startRefundFollower(current: () => JobsContext): Loop {
  const steps = { count: 0 };
  return startLoop(() => followRefunds(current(), current().chains, steps), {
    pollMs: 60_000,
    log: current().log,
    failureMessage: 'the refunds under way could not be followed',
  });
}
