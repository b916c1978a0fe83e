import type { sendCallback } from '../calls/use-cases/callbacks.ts';
import type { Metrics, PeerRequest } from '../ledger/metrics/metrics.ts';
import type { Chain } from '../payments/peers/chain/chain.ts';
import type { Facilitator } from '../payments/peers/facilitator/facilitator.ts';
import type { PushRunner } from '../calls/peers/runner/push-runner.ts';
import type { Upstream } from '../chat/peers/upstream/upstream.ts';

type Answered = { readonly kind: string };

/** Calls that are measured by the kind of their answers. */
function timed<A extends readonly unknown[], R extends Answered>(
  metrics: Metrics,
  what: Pick<PeerRequest, 'peer' | 'name' | 'operation'>,
  call: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  return async (...args) => {
    const startedMs = performance.now();
    const answer = await call(...args);
    metrics.peerAnswered({ ...what, outcome: answer.kind, secs: (performance.now() - startedMs) / 1_000 });
    return answer;
  };
}

/** The facilitator, with the duration of its answers measured where metrics are wanted. */
export function timedFacilitator(facilitator: Facilitator, metrics: Metrics | undefined): Facilitator {
  if (!metrics) return facilitator;
  const peer = 'facilitator';
  return {
    ...facilitator,
    verify: timed(metrics, { peer, operation: 'verify' }, facilitator.verify),
    settle: timed(metrics, { peer, operation: 'settle' }, facilitator.settle),
  };
}

/** A chain, with the duration of looking settlements up measured where metrics are wanted. */
export function timedChain(chain: Chain, name: string, metrics: Metrics | undefined): Chain {
  if (!metrics) return chain;
  const peer = 'chain';
  return {
    ...chain,
    waitForSettlement: timed(metrics, { peer, name, operation: 'confirm' }, chain.waitForSettlement),
    findSettlement: timed(metrics, { peer, name, operation: 'find_settlement' }, chain.findSettlement),
    isUsed: timed(metrics, { peer, name, operation: 'is_used' }, chain.isUsed),
  };
}

/** A push runner, with the duration of deliveries measured where metrics are wanted. */
export function timedRunner(runner: PushRunner, name: string, metrics: Metrics | undefined): PushRunner {
  if (!metrics) return runner;
  return { ...runner, push: timed(metrics, { peer: 'runner', name, operation: 'push' }, runner.push) };
}

type Call = typeof sendCallback;

/** Sends callbacks, and measures their duration and outcome where metrics are wanted. */
export function timedCallbacks(send: Call, metrics: Metrics | undefined): Call {
  if (!metrics) return send;
  return async (...args) => {
    const startedMs = performance.now();
    const outcome = await send(...args);
    const secs = (performance.now() - startedMs) / 1_000;
    if (outcome !== 'nothing_to_tell')
      metrics.peerAnswered({ peer: 'client', operation: 'call_back', outcome, secs });
    return outcome;
  };
}

/** An upstream; with metrics, the time until it begins or refuses to answer is measured. */
export function timedUpstream(upstream: Upstream, metrics: Metrics | undefined): Upstream {
  if (!metrics) return upstream;
  const { name, complete } = upstream;
  const timedComplete = timed(metrics, { peer: 'upstream', name, operation: 'complete' }, complete);
  // its other members read the state of the original
  return Object.create(upstream, { complete: { value: timedComplete, enumerable: true } }) as Upstream;
}
