import type { JobsConfig, RunnerConfig } from '../../base/config/config.ts';
import { deliverCall, type DeliveryPorts } from '../use-cases/deliver-call.ts';
import { jobTurns } from '../use-cases/call-order.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { countGone, isRunnerPaused } from '../use-cases/pause-runner.ts';
import { createPushRunner, goneReason, type PushRunner } from '../peers/runner/push-runner.ts';
import { leaseCalls } from '../store/calls.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { createPromiseTracker } from '../../base/runtime/promise-tracker.ts';
import { createPushWindow, type PushWindow } from './push-window.ts';

/** A call that this process releases wakes the relay immediately. */
const pollMs = 1_000;

export interface RelayPorts extends DeliveryPorts {
  readonly settings: JobsConfig;
}

/** Leases due calls and pushes them to one runner, with the configured concurrency. */
export function startRelay(
  context: RelayPorts,
  runner: RunnerConfig & { readonly url: string },
  current: () => RelayPorts,
  openPeer: typeof createPushRunner = createPushRunner,
): Loop {
  const { timeoutMs, maxResultBytes, leaseSecs, concurrencyPerRunner, maxCallAgeSecs } =
    context.config.delivery;
  const window = createPushWindow(concurrencyPerRunner);
  const peer = watched(openPeer({ url: runner.url, timeoutMs, maxResultBytes }), window);
  const running = createPromiseTracker();
  /** When the runner last completed a call of this process. */
  let completedSecs = 0;

  /** A reload may have changed the tokens. */
  const inForce = (): RunnerConfig =>
    current().config.runners.find(({ name }) => name === runner.name) ?? runner;

  const deliver = async (call: Parameters<typeof deliverCall>[3]): Promise<void> => {
    try {
      const answer = await deliverCall(current(), inForce(), peer, call);
      if (answer.kind === 'completed') completedSecs = nowSecs(context);
      else if (answer.reason === goneReason) await countGone(context, runner, call.callId, completedSecs);
    } catch (error) {
      // the call is due again when its lease expires
      context.log.error({ err: error, call_id: call.callId }, 'a delivery could not be recorded');
    }
  };

  const step = async (): Promise<boolean> => {
    const free = Math.min(concurrencyPerRunner - running.size, window.room());
    if (free <= 0 || (await isRunnerPaused(context, runner))) return false;
    const calls = await leaseCalls(
      context.pool,
      runner.services,
      free,
      leaseSecs,
      jobTurns(current().settings),
      maxCallAgeSecs,
    );
    for (const call of calls) {
      void running.add(deliver(call)).then(() => loop.wake());
    }
    return false;
  };
  const loop = startLoop(step, {
    pollMs,
    log: context.log,
    failureMessage: 'due calls could not be read',
    async onStopped() {
      await running.drained();
      await peer.close();
    },
  });
  return loop;
}

/** A runner whose answers decide how many calls it gets. */
function watched(peer: PushRunner, window: PushWindow): PushRunner {
  return {
    async push(push) {
      window.began();
      const answer = await peer.push(push);
      window.ended(answer);
      return answer;
    },
    close: () => peer.close(),
  };
}
