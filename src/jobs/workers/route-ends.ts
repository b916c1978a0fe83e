import { runnerRoutes } from '../../base/config/routes.ts';
import {
  findUnawaitedCalls,
  takeUnrepeatedCalls,
  type UnrepeatedCall,
} from '../../calls/store/route-calls.ts';
import { discardCall } from '../../calls/use-cases/discard-call.ts';
import { unawaited } from '../use-cases/routes/runner-upstream.ts';
import { endAttempt, type LoggedPorts } from '../../calls/use-cases/record-attempt.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import type { JobsConfig } from '../../base/config/config.ts';

const pollMs = 2_000;
const atOnce = 50;
/** Longer than their appends can take; a process that ends before leaves them to another one. */
const leaseSecs = 60;

interface RouteEndPorts extends LoggedPorts {
  readonly settings: Pick<JobsConfig, 'routes'>;
}

/**
 * Ends the calls of routes whose time for repetitions is over. The last failure was the upstream's, or a process died: dead letter, and the
 * refund is due. The client has left in the middle of an answer and not come back: it counts as delivered.
 */
export function startRouteEnder(current: () => RouteEndPorts): Loop {
  return startLoop(() => endRoutes(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'paid requests of routes that cannot be repeated any more could not be ended',
  });
}

const unawaitedPollMs = 5_000;

/** Gives up the calls that routes have made of jobs, and that no request can wait for any more: also those of a process that died. */
export function startUnawaitedEnder(current: () => RouteEndPorts): Loop {
  return startLoop(() => endUnawaited(current()), {
    pollMs: unawaitedPollMs,
    log: current().log,
    failureMessage: 'calls of routes that no request waits for could not be given up',
  });
}

async function endUnawaited(context: RouteEndPorts): Promise<boolean> {
  const jobs = runnerRoutes(context.settings.routes).map(({ job }) => job);
  if (jobs.length === 0) return false;
  const calls = await findUnawaitedCalls(context.db, jobs, atOnce);
  const ended = await Promise.all(calls.map((callId) => discardCall(context, callId, unawaited)));
  return ended.length === atOnce && ended.every(({ kind }) => kind === 'discarded');
}

async function endRoutes(context: RouteEndPorts): Promise<boolean> {
  const routes = [...(context.settings.routes?.all.values() ?? [])];
  const calls = await takeUnrepeatedCalls(context.pool, routes, { max: atOnce, leaseSecs });
  await Promise.all(calls.map((call) => endOne(context, call)));
  return calls.length === atOnce;
}

async function endOne(context: RouteEndPorts, call: UnrepeatedCall): Promise<void> {
  await endAttempt(
    context,
    call,
    call.leftByClient
      ? { kind: 'completed', result: Buffer.alloc(0), resultOmitted: true }
      : { kind: 'dead', reason: 'not_repeated' },
    { isFirstNews: false, runner: undefined },
  );
}
