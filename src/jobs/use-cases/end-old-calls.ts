import { takeOldCalls } from '../../calls/store/old-calls.ts';
import type { JobsContext } from './context.ts';
import { logAttempt, recordAttempt, tooOld } from './record-attempt.ts';

/** So many at the same time: their appends share the lane's batches. */
const atOnce = 50;
/** Longer than their appends can take; a process that ends before leaves them to another one. */
const leaseSecs = 60;

/**
 * Dead-letters calls that have not ended within `max_call_age_secs` since they were enqueued, whether they wait, no runner takes them, or one extends its
 * lease: their refund is due. Returns whether there may be more. Top-ups are ended by their own worker, which knows whether credit was given.
 */
export async function endOldCalls(context: JobsContext): Promise<boolean> {
  const { pool, log, config } = context;
  const { maxCallAgeSecs: maxAgeSecs } = config.delivery;
  const calls = await takeOldCalls(pool, { except: config.topUps, max: atOnce, maxAgeSecs, leaseSecs });
  await Promise.all(
    calls.map(async (call) => {
      const outcome = { kind: 'dead', reason: tooOld } as const;
      const recorded = await recordAttempt(context, call, outcome, { isFirstNews: true, runner: undefined });
      logAttempt(log, call, outcome, undefined, recorded);
    }),
  );
  return calls.length === atOnce;
}
