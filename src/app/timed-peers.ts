import type { Metrics, PeerRequest } from '../metrics/metrics.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { Facilitator } from '../peers/facilitator/facilitator.ts';

type Answered = { readonly kind: string };

/** Calls that are measured by the kind of their answers. */
function timed<A extends readonly unknown[], R extends Answered>(
  metrics: Metrics,
  what: Pick<PeerRequest, 'peer' | 'operation'>,
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
export function timedChain(chain: Chain, metrics: Metrics | undefined): Chain {
  if (!metrics) return chain;
  const peer = 'chain';
  return {
    ...chain,
    waitForSettlement: timed(metrics, { peer, operation: 'confirm' }, chain.waitForSettlement),
    findSettlement: timed(metrics, { peer, operation: 'find_settlement' }, chain.findSettlement),
    isUsed: timed(metrics, { peer, operation: 'is_used' }, chain.isUsed),
  };
}
