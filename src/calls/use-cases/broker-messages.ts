import type { RunnerConfig } from '../../base/config/config.ts';
import {
  type LeaseGrant,
  openLeaseRequest,
  sealLeaseAnswer,
} from '../../base/values/broker/lease-messages.ts';
import { openResult, type ReportedOutcome } from '../../base/values/broker/result-message.ts';
import { lastWords } from '../../base/values/last-words.ts';
import { boundedWaitMs } from '../../base/peers/http/retry-after.ts';
import { heldName, holdLeases } from '../store/held-leases.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { finishLease, type LeasePorts } from './lease-calls.ts';
import { isRunnerPaused } from './pause-runner.ts';
import type { AttemptOutcome } from './record-attempt.ts';

export interface LeaseAnswer {
  readonly answer: Uint8Array;
  /** The leases, as the messages named them, whose calls the runner has taken now. */
  readonly taken: readonly string[];
}

/**
 * Answers a runner that takes calls, or extends their leases. A runner that is paused takes none, and keeps those that it has.
 * Undefined, for no answer, if the runner did not sign the request.
 */
export async function answerLeaseRequest(
  context: LeasePorts,
  runner: RunnerConfig,
  message: Uint8Array,
): Promise<LeaseAnswer | undefined> {
  // a runner that asks again keeps what it has, and is answered once the ledger is recovered
  if (context.lane.state.halt) return undefined;
  const request = openLeaseRequest(runner.tokens, message, nowSecs(context));
  if (!request) {
    context.log.warn(
      { runner: runner.name },
      'a lease request on the broker was not signed by its runner in the last minutes',
    );
    return undefined;
  }
  const { nonce, wishes, leaseSecs } = request;
  const isPaused = await isRunnerPaused(context, runner);
  const allowed = isPaused ? wishes.filter(({ leaseId, newLeaseId }) => leaseId === newLeaseId) : wishes;
  const { maxCallAgeSecs } = context.config.delivery;
  const held = await holdLeases(context.pool, allowed, runner.services, leaseSecs, maxCallAgeSecs);
  const grants = wishes.map((wish): LeaseGrant => {
    if (!allowed.includes(wish)) return { kind: 'later' };
    const lastsMs = held.get(heldName(wish.callId, wish.newLeaseId));
    return lastsMs === undefined ? { kind: 'lost' } : { kind: 'held', lastsMs };
  });
  const taken = wishes.filter(
    (wish, index) => wish.leaseId !== wish.newLeaseId && grants[index]?.kind === 'held',
  );
  return {
    answer: sealLeaseAnswer(runner.tokens, nonce, grants),
    taken: taken.map(({ leaseId }) => leaseId),
  };
}

/** Records what a runner reports of a call, once: a report that comes again, or whose lease is lost, changes nothing. */
export async function takeResult(
  context: LeasePorts,
  runner: RunnerConfig,
  message: Uint8Array,
): Promise<void> {
  const result = openResult(runner.tokens, message);
  if (!result) {
    context.log.warn({ runner: runner.name }, 'a result on the broker was not signed by its runner');
    return;
  }
  const { callId, leaseId } = result;
  const done = await finishLease(
    context,
    runner,
    { callId, leaseId },
    outcomeOf(context, runner, result.outcome),
  );
  if (done.kind === 'lease_lost')
    context.log.warn(
      { call_id: callId, runner: runner.name },
      'a result on the broker came too late: another attempt has its call',
    );
}

function outcomeOf({ config }: LeasePorts, runner: RunnerConfig, reported: ReportedOutcome): AttemptOutcome {
  if (reported.kind === 'completed') {
    const { contentType, price, body } = reported;
    // the runner did the work: a result that is too large is left out, as that of a push
    const isTooLarge = body.length > config.delivery.maxResultBytes;
    const result = isTooLarge ? Buffer.alloc(0) : body;
    return { kind: 'completed', contentType, price, result, resultOmitted: isTooLarge };
  }
  const said = { reason: 'runner_failed', error: lastWords(reported.error, runner.tokens) };
  if (!reported.retry) return { kind: 'dead', ...said };
  return { kind: 'retry', retryAfterMs: boundedWaitMs(reported.retryAfterSecs * 1_000), ...said };
}
