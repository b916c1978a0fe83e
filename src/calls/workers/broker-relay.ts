import type { RunnerConfig } from '../../base/config/config.ts';
import type { RelayPorts } from './relay.ts';
import { jobTurns } from '../use-cases/call-order.ts';
import { giveBackUntaken, handOver } from '../use-cases/deliver-call.ts';
import { isRunnerPaused } from '../use-cases/pause-runner.ts';
import type { Broker } from '../peers/broker/broker.ts';
import { backOffMs } from '../../base/values/back-off.ts';
import { pause } from '../../base/runtime/pause.ts';
import { createPromiseTracker } from '../../base/runtime/promise-tracker.ts';
import { type CallLease, leaseCalls } from '../store/calls.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

/** A call that this process releases, and one that a runner takes through it, wakes the relay immediately. */
const pollMs = 1_000;
const mostAtOnce = 200;
const longestPublishMs = 500;
const refusedBackOff = { firstMs: 1_000, longestMs: 10_000 };
/** Of those that other processes let runners take, this one knows nothing. */
const mostLate = 5_000;
/** A lease lasts longer than its message, so that it is given back rather than expired, which costs no attempt. */
const spareSecs = 30;

/** How many calls are handed over simultaneously. Each call that the broker does not store is an event in the ledger: after one it is tried with one call, after a growing pause. */
function createPace() {
  let most = mostAtOnce;
  /** In a row; several in one pause are one. */
  let refusals = 0;
  let pausedUntilMs = -Infinity;
  return {
    most: (): number => (performance.now() < pausedUntilMs ? 0 : most),
    stored(): void {
      refusals = 0;
      most = Math.min(mostAtOnce, most * 2);
    },
    refused(): void {
      most = 1;
      if (performance.now() < pausedUntilMs) return;
      pausedUntilMs = performance.now() + backOffMs(refusedBackOff, refusals);
      refusals += 1;
    },
  };
}

export interface BrokerRelay extends Loop {
  /** A runner has taken the calls of these leases. */
  noteTaken(leaseIds: readonly string[]): void;
}

/** Hands due calls to the broker for one runner, as long as few enough wait there. */
export function startBrokerRelay(
  context: RelayPorts,
  runner: RunnerConfig,
  current: () => RelayPorts,
  broker: Broker,
  settings: { readonly maxWaiting: number; readonly takeWithinSecs: number },
): BrokerRelay {
  const { maxWaiting, takeWithinSecs } = settings;
  const publishing = createPromiseTracker();
  const pace = createPace();
  /** Handed over and perhaps not taken yet, in the order of their time. */
  const handed = new Map<string, { readonly call: CallLease; readonly atMs: number }>();

  /** A reload may have changed the tokens. */
  const inForce = (): RunnerConfig =>
    current().config.runners.find(({ name }) => name === runner.name) ?? runner;

  const publish = async (call: Parameters<typeof handOver>[3]): Promise<void> => {
    try {
      const atMs = performance.now();
      const outcome = await handOver(current(), inForce(), broker, call);
      if (outcome === 'not_stored') pace.refused();
      if (outcome === 'handed_over') pace.stored();
      const { callId, leaseId, attempt, failures, stream } = call;
      if (outcome === 'handed_over')
        handed.set(leaseId, { call: { callId, leaseId, attempt, failures, stream }, atMs });
    } catch (error) {
      // the call is due again when its lease expires
      context.log.error({ err: error, call_id: call.callId }, 'a call could not be handed to the broker');
    }
  };

  /** What no runner has taken in time is due again: its message is gone too. */
  const giveBackLate = async (): Promise<void> => {
    const lateMs = performance.now() - takeWithinSecs * 1_000;
    const late: CallLease[] = [];
    // in the order of their time
    for (const { call, atMs } of handed.values()) {
      if (atMs >= lateMs || late.length === mostLate) break;
      late.push(call);
    }
    await giveBackUntaken(current(), runner, late);
    for (const { leaseId } of late) handed.delete(leaseId);
  };

  const step = async (): Promise<boolean> => {
    await giveBackLate();
    const { kind } = broker.state();
    const isTaking = kind === 'ready' || kind === 'refusing';
    if (!isTaking || pace.most() === 0 || (await isRunnerPaused(context, runner))) return false;
    const waiting = await broker.countWaiting(runner.name);
    if (waiting.kind !== 'counted') return false;
    const room = maxWaiting - waiting.messages - publishing.size;
    // refilled a quarter at a time, not call by call
    if (room < Math.max(1, maxWaiting / 4)) return false;
    const most = Math.min(room, pace.most());
    const calls = await leaseCalls(
      context.pool,
      runner.services,
      most,
      takeWithinSecs + spareSecs,
      jobTurns(current().settings),
      context.config.delivery.maxCallAgeSecs,
    );
    const published = Promise.all(calls.map((call) => publishing.add(publish(call))));
    // one without an answer does not hold up those that follow
    await Promise.race([published, pause(longestPublishMs)]);
    return calls.length > 0;
  };
  const loop = startLoop(step, {
    pollMs,
    log: context.log,
    failureMessage: 'due calls could not be handed to the broker',
    onStopped: () => publishing.drained(),
  });
  return {
    ...loop,
    noteTaken(leaseIds) {
      for (const leaseId of leaseIds) handed.delete(leaseId);
      loop.wake();
    },
  };
}
