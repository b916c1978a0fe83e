import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { LastKnown } from '../../base/runtime/last-known.ts';
import { readTriggerProgress, type TriggerProgress } from '../../calls/store/trigger-cursors.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 2_000;

/** Reads how far all gateways have brought the triggers, for the metrics of this one. */
export function startTriggerWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  known: LastKnown<TriggerProgress>,
): Loop {
  return startLoop(async () => known.learn(await readTriggerProgress(pool)), {
    pollMs,
    log,
    failureMessage: 'how far the triggers are could not be read',
  });
}
