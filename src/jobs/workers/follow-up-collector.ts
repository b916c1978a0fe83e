import type { LoggedPorts } from '../../calls/use-cases/record-attempt.ts';
import { collectFollowUps } from '../../payments/store/follow-ups.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 500;
const maxEvents = 5_000;

/** Reads new events of the ledger, for all processes, and creates their follow-ups. */
export function startFollowUpCollector({ pool, log }: Pick<LoggedPorts, 'pool' | 'log'>): Loop {
  return startLoop(async () => (await collectFollowUps(pool, maxEvents)) === maxEvents, {
    pollMs,
    log,
    failureMessage: 'follow-ups could not be collected from the ledger',
  });
}
