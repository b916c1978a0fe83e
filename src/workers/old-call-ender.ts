import type { JobsContext } from '../jobs/context.ts';
import { endOldCalls } from '../jobs/end-old-calls.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 5_000;

/** Dead-letters the calls whose age has ended. */
export function startOldCallEnder(current: () => JobsContext): Loop {
  return startLoop(() => endOldCalls(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'calls that are too old could not be ended',
  });
}
