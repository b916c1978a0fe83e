import type pg from 'pg';
import { addPostings, projectNext } from '../use-cases/projections/project.ts';
import { createStreamMemory } from '../use-cases/projections/stream-memory.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 500;
const eventsAtOnce = 5_000;

/** Applies new events to the read models, for all processes. */
export function startProjector({ pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog }): Loop {
  const memory = createStreamMemory();
  const addNext = addPostings(pool, eventsAtOnce);
  const step = async (): Promise<boolean> => {
    const isBehind = (await projectNext(pool, eventsAtOnce, { memory })) === eventsAtOnce;
    return (await addNext()) || isBehind;
  };
  return startLoop(step, { pollMs, log, failureMessage: 'the read models could not be updated' });
}
