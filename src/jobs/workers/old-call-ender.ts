import type { JobsContext } from '../use-cases/context.ts';
import { endOldCalls } from '../use-cases/end-old-calls.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 5_000;

/** Dead-letters the calls whose age has ended. */
export function startOldCallEnder(current: () => JobsContext): Loop {
  return startLoop(() => endOldCalls(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'calls that are too old could not be ended',
  });
}
