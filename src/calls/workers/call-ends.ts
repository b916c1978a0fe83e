import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { takeOldCalls } from '../store/old-calls.ts';
import { type LoggedPorts, tooOld, endAttempt } from '../use-cases/record-attempt.ts';
import { discardByPolicy, type PolicyPorts } from '../use-cases/discard-call.ts';
import { removeUnusedUploads } from '../use-cases/large-result.ts';

const pollMs = 5_000;
/** This many at the same time: their appends share the lane's batches. */
const atOnce = 50;
/** Longer than their appends can take; a process that ends before leaves them to another one. */
const leaseSecs = 60;

/** Dead-letters the calls whose age has ended. */
export function startOldCallEnder(current: () => LoggedPorts): Loop {
  return startLoop(() => endOldCalls(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'calls that are too old could not be ended',
  });
}

/**
 * Dead-letters calls that have not ended within `max_call_age_secs` since they were enqueued, whether they wait, no runner takes them, or one extends its
 * lease: their refund is due. Returns whether there may be more. Top-ups are ended by their own worker, which knows whether credit was given.
 */
async function endOldCalls(context: LoggedPorts): Promise<boolean> {
  const { pool, config } = context;
  const { maxCallAgeSecs: maxAgeSecs } = config.delivery;
  const calls = await takeOldCalls(pool, { except: config.topUps, max: atOnce, maxAgeSecs, leaseSecs });
  const outcome = { kind: 'dead', reason: tooOld } as const;
  await Promise.all(
    calls.map((call) => endAttempt(context, call, outcome, { isFirstNews: true, runner: undefined })),
  );
  return calls.length === atOnce;
}

/** Gives up the dead letters that the policies of their jobs do not keep. */
export function startDeadLetterDiscarder(current: () => PolicyPorts): Loop {
  return startLoop(() => discardByPolicy(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'dead letters could not be given up by policy',
  });
}

const sweepMs = 600_000;

/** Deletes the parts of large results whose life has ended, and of those that were never completed. */
export function startResultSweeper(context: Parameters<typeof removeUnusedUploads>[0]): Loop {
  return startLoop(() => removeUnusedUploads(context), {
    pollMs: sweepMs,
    log: context.log,
    failureMessage: 'large results could not be deleted from the result store',
  });
}
