import type { JobsContext } from '../jobs/context.ts';
import { collectFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 500;
const eventsAtOnce = 5_000;

/** Reads the ledger as it grows, for all processes, and notes what is wanted beside it. */
export function startFollowUpCollector({ pool, log }: Pick<JobsContext, 'pool' | 'log'>): Loop {
  return startLoop(async () => (await collectFollowUps(pool, eventsAtOnce)) === eventsAtOnce, {
    pollMs,
    log,
    failureMessage: 'follow-ups could not be collected from the ledger',
  });
}
