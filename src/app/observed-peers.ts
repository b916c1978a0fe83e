import { traceStep, type Tracing } from '../base/values/tracing.ts';
import type { sendCallback } from '../calls/use-cases/callbacks.ts';
import type { PushRunner } from '../calls/peers/runner/push-runner.ts';
import type { Upstream } from '../chat/peers/upstream/upstream.ts';
import type { Metrics, PeerRequest } from '../ledger/metrics/metrics.ts';
import type { Chain } from '../payments/peers/chain/chain.ts';
import type { Facilitator } from '../payments/peers/facilitator/facilitator.ts';

/** Where requests to peers are measured, and traced as spans of the requests that wait for them. */
interface Observers {
  /** Undefined if nothing is measured. */
  readonly metrics?: Metrics | undefined;
  /** Undefined if requests are not traced. */
  readonly tracing?: Tracing | undefined;
}

/** Answers that leave the payment's outcome open. */
const failures: ReadonlySet<string> = new Set(['unavailable', 'unknown', 'not_sent']);

/** Calls whose duration is measured and whose step is traced, with the kinds of their answers. */
function observed<A extends readonly unknown[], R extends { readonly kind: string }>(
  { metrics, tracing }: Observers,
  what: Pick<PeerRequest, 'peer' | 'name' | 'operation'>,
  call: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  const timed = async (...args: A): Promise<R> => {
    const startedMs = performance.now();
    const answer = await call(...args);
    metrics?.peerAnswered({ ...what, outcome: answer.kind, secs: (performance.now() - startedMs) / 1_000 });
    return answer;
  };
  const name = what.operation.replaceAll('_', ' ');
  const start = { name, kind: 'client', attributes: { 'tollbook.peer': what.peer } } as const;
  return (...args) =>
    traceStep(
      tracing,
      start,
      () => timed(...args),
      ({ kind }) => ({
        attributes: { 'tollbook.outcome': kind },
        error: failures.has(kind) ? kind : undefined,
      }),
    );
}

/**
 * A facilitator, with its answers measured and traced.
 * @param name undefined if there is only one
 */
export function observedFacilitator(
  facilitator: Facilitator,
  name: string | undefined,
  by: Observers,
): Facilitator {
  const of = (operation: string) =>
    ({ peer: 'facilitator', operation, ...(name !== undefined && { name }) }) as const;
  return {
    ...facilitator,
    verify: observed(by, of('verify'), facilitator.verify),
    settle: observed(by, of('settle'), facilitator.settle),
  };
}

/** A chain, with the search for settlements measured and traced. */
export function observedChain(chain: Chain, name: string, by: Observers): Chain {
  const of = (operation: string) => ({ peer: 'chain', name, operation }) as const;
  return {
    ...chain,
    waitForSettlement: observed(by, of('confirm'), chain.waitForSettlement),
    findSettlement: observed(by, of('find_settlement'), chain.findSettlement),
    findAuthorization: observed({ tracing: by.tracing }, of('find_authorization'), chain.findAuthorization),
    isUsed: observed(by, of('is_used'), chain.isUsed),
  };
}

/** A push runner, with the duration of deliveries measured. */
export function timedRunner(runner: PushRunner, name: string, metrics: Metrics | undefined): PushRunner {
  return { ...runner, push: observed({ metrics }, { peer: 'runner', name, operation: 'push' }, runner.push) };
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
  const timedComplete = observed({ metrics }, { peer: 'upstream', name, operation: 'complete' }, complete);
  // its other members read the state of the original
  return Object.create(upstream, { complete: { value: timedComplete, enumerable: true } }) as Upstream;
}
