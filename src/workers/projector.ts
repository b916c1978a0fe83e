import type pg from 'pg';
import { projectNext } from '../projections/project.ts';
import type { Log } from '../jobs/context.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 500;
const eventsAtOnce = 5_000;

/** Keeps the read models behind the ledger, for all processes. */
export function startProjector({ pool, log }: { readonly pool: pg.Pool; readonly log: Log }): Loop {
  return startLoop(
    async () => (await projectNext(pool, eventsAtOnce)) === eventsAtOnce,
    pollMs,
    (error) => log.error({ err: error }, 'the read models could not follow the ledger'),
  );
}
