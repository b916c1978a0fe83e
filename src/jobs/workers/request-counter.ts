import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;

/**
 * Records the sums of refusals, sessions and summarised quotes once a second, and once more when it stops. A crash loses at most one second
 * of them.
 */
export function startRequestCounter({
  lane,
  log,
  requestTally,
}: {
  readonly lane: Lane;
  readonly log: OperatorLog;
  readonly requestTally: RequestTally;
}): Loop {
  return startLoop(() => requestTally.record(lane), {
    pollMs,
    log,
    failureMessage:
      'the sums of refusals, sessions and quotes could not be recorded: they are kept for the next attempt',
    onStopped: () => requestTally.record(lane),
  });
}
